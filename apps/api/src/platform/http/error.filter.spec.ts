import { HttpException } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import { BatchQueueFullError } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import { describe, expect, it } from 'vitest';
import { errorHeaders, toPalestraError } from './error.filter.ts';
import { RouteTable } from './route-table.ts';

const routes = new RouteTable();
routes.add('GET', '/v1/runs/:id');
const code = (error: unknown, url = '/x') => toPalestraError(error, { method: 'GET', url }, routes).code;

describe('toPalestraError', () => {
  it.each([
    [new Error('boom'), 'internal_error'],
    [new PalestraError('key_not_found'), 'key_not_found'],
    [new BatchQueueFullError(5), 'ingest_overloaded'],
    [Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }), 'database_unavailable'],
    [Object.assign(new Error('going down'), { code: '57P01' }), 'database_unavailable'],
    [Object.assign(new Error('deadlock detected'), { code: '40P01' }), 'database_unavailable'],
    [new Error('outer', { cause: Object.assign(new Error('inner'), { code: 'P1001' }) }), 'database_unavailable'],
    [Object.assign(new Error('invalid byte sequence'), { code: '22021' }), 'invalid_request'],
    [new DOMException('too late', 'TimeoutError'), 'backend_timeout'],
    [new BlobError('full', 'no room'), 'storage_full'],
    [new BlobError('unavailable', 'away'), 'storage_unavailable'],
    [new BlobError('not_found', 'none'), 'file_not_found'],
    [Object.assign(new Error('large'), { statusCode: 413 }), 'body_too_large'],
    [Object.assign(new Error('odd'), { statusCode: 400 }), 'invalid_request'],
    [new HttpException('Cannot GET /x', 404), 'route_not_found'],
  ])('maps %s to %s', (error, expected) => {
    expect(code(error)).toBe(expected);
  });

  it('distinguishes a wrong method from an unknown path', () => {
    expect(code(new HttpException('Cannot PUT', 404), '/v1/runs/7?x=1')).toBe('method_not_allowed');
    expect(code(new HttpException('Cannot PUT', 404), '/v1/runs')).toBe('route_not_found');
  });

  it('sends the headers that tell clients how long to wait', () => {
    expect(errorHeaders(new PalestraError('environment_starting', { retryAfterSeconds: 2, backendStarting: true }))).toEqual({
      'retry-after': '2',
      'x-backend-state': 'starting',
    });
    expect(errorHeaders(new PalestraError('unauthorized'))).toEqual({});
  });
});
