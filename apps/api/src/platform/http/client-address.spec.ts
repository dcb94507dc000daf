import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../config.ts';
import { ClientAddresses, networkOf } from './client-address.ts';

const request = (remoteAddress: string | undefined, forwarded?: string) =>
  ({ socket: { remoteAddress }, headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage;

describe('the client address of a request', () => {
  test('is the peer of the connection, unless a trusted proxy reports another', () => {
    const none = new ClientAddresses([]);
    expect(none.of(request('203.0.113.9', '10.0.0.1'))).toBe('203.0.113.9');
    expect(none.of(request('127.0.0.1', '10.0.0.1'))).toBe('127.0.0.1');
    expect(none.of(request('::ffff:203.0.113.9'))).toBe('203.0.113.9');
    expect(none.of(request(undefined))).toBe('');
    const behind = new ClientAddresses(['10.0.0.0/8', 'loopback']);
    expect(behind.of(request('10.1.2.3', '198.51.100.7'))).toBe('198.51.100.7');
    expect(behind.of(request('::ffff:10.1.2.3', '198.51.100.7'))).toBe('198.51.100.7');
    // The client's own header values stand before those of the proxy.
    expect(behind.of(request('127.0.0.1', '1.1.1.1, 198.51.100.7, 10.0.0.1'))).toBe('198.51.100.7');
    expect(behind.of(request('203.0.113.9', '198.51.100.7'))).toBe('203.0.113.9');
  });

  test('an invalid list of proxies is a configuration error', () => {
    expect(() => readConfig({ PALESTRA_TRUSTED_PROXIES: '10.0.0.0/8,proxy' }, (file) => file)).toThrow(
      /^PALESTRA_TRUSTED_PROXIES: [^\n]*proxy/,
    );
    expect(readConfig({ PALESTRA_TRUSTED_PROXIES: '10.0.0.0/8, ::1' }, (file) => file).trustedProxies).toEqual(['10.0.0.0/8', '::1']);
  });
});

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:DB8:1:2::1', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['::1', '0:0:0:0'],
  ['', ''],
])('the network of %s is %s', (address, network) => expect(networkOf(address)).toBe(network));
