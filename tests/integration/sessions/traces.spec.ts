import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startServer, type TestServer } from '../../support/server.ts';
import { callTool, closeSession, openSession, startObserved, type World } from '../observed.world.ts';

/** A small OTLP/HTTP collector. */
let collector: Server;
const bodies: string[] = [];
const paths = new Set<string>();
let server: TestServer;
let world: World;

beforeAll(async () => {
  collector = createServer((request, response) => {
    paths.add(`${request.method} ${request.url} ${request.headers['content-type']}`);
    let body = '';
    request.setEncoding('utf8').on('data', (piece) => (body += piece));
    request.on('end', () => {
      bodies.push(body);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  server = await startServer({ otlpEndpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}` });
  world = await startObserved(server);
});
afterAll(async () => {
  await world?.upstream.close();
  collector.close();
});

test('a session is a trace with its calls as spans, and shutdown sends the last ones', async () => {
  const sid = await openSession(server, world.environment);
  await callTool(server, sid, 'score', { reward: 1 });
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const raised = await callTool(server, sid, 'raise', {}, { traceparent });
  await closeSession(server, sid);
  await server.close();
  const spans: any[] = bodies.flatMap((body) =>
    JSON.parse(body).resourceSpans.flatMap((r: any) => r.scopeSpans.flatMap((s: any) => s.spans)),
  );
  const attributes = (span: any) => Object.fromEntries(span.attributes.map(({ key, value }: any) => [key, Object.values(value)[0]]));
  const named = (name: string) => spans.filter((span) => span.name === name);
  expect([...paths]).toEqual(['POST /v1/traces application/json']);
  const [session] = named(`session ${world.environment}`);
  expect(session.traceId).toBe(sid.replaceAll('-', ''));
  expect(session.parentSpanId).toBeUndefined();
  expect(attributes(session)).toMatchObject({
    'session.id': sid,
    'palestra.session.state': 'closed',
    'palestra.environment': world.environment,
  });
  expect(named('setup')).toMatchObject([{ traceId: session.traceId, parentSpanId: session.spanId }]);
  const [score] = named('execute_tool score');
  expect(score).toMatchObject({ traceId: session.traceId, parentSpanId: session.spanId });
  expect(attributes(score)).toMatchObject({ 'gen_ai.tool.name': 'score', 'palestra.failure_class': 'ok', 'session.id': sid });
  const [raise] = named('execute_tool raise');
  expect(raise).toMatchObject({ traceId: '4bf92f3577b34da6a3ce929d0e0e4736', parentSpanId: '00f067aa0ba902b7', status: { code: 2 } });
  expect(raise.links).toMatchObject([{ traceId: session.traceId, spanId: session.spanId }]);
  expect(attributes(raise)).toMatchObject({
    'palestra.task_id': raised.taskId,
    'palestra.failure_class': 'environment',
    'error.type': 'tool_failed',
  });
  expect(bodies.join()).not.toContain('it broke with');
});
