import { describe, expect, test } from 'vitest';
import { mayReach, parseCidr } from './address-ranges.ts';

/** As `new URL` writes the host of a URL, without brackets. */
const hostOf = (host: string) => new URL(`http://${host}/`).hostname.replace(/^\[|\]$/g, '');

const OF_THIS_MACHINE = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '0x7f.1',
  '0x7f000001',
  '2130706433',
  '017700000001',
  '0177.0.0.1',
  '127.0.0.1.',
  '127.255.255.254',
  '①②⑦.0.0.1',
  '0',
  '0.0.0.0',
  '0x0',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:7f00:0001]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::7f00:1]',
];
const PRIVATE = [
  '10.0.0.1',
  '10.1',
  '167772161',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '100.127.255.255',
  '[fd00::1]',
  '[fc00::1]',
  '[::ffff:10.0.0.1]',
  '[64:ff9b::a00:1]',
];
const NEVER = [
  '169.254.169.254',
  '0xa9fea9fe',
  '2852039166',
  '169.254.170.2',
  '169.254.1.1',
  '[::ffff:169.254.169.254]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::a9fe:a9fe]',
  '[fe80::1]',
  '[fec0::1]',
  '[fd00:ec2::254]',
  '[fd20:ce::254]',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  '224.0.0.1',
  '239.255.255.250',
  '[ff02::1]',
  '255.255.255.255',
  '240.0.0.1',
  '192.0.2.1',
  '198.18.0.1',
  '[2002:7f00:1::]',
  '[2002:a9fe:a9fe::1]',
  '[2001:0:7f00:1::1]',
  '[2001:db8::1]',
  '[::127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[100::1]',
  '[5f00::1]',
  '[4000::1]',
];
const PUBLIC = [
  '93.184.216.34',
  '8.8.8.8',
  '[2606:4700:4700::1111]',
  '[64:ff9b::808:808]',
  '[::ffff:8.8.8.8]',
  '172.32.0.1',
  '100.128.0.1',
];

describe.each([
  ['this machine', OF_THIS_MACHINE, { allowed: true, refused: false }],
  ['private networks', PRIVATE, { allowed: true, refused: false }],
  ['what is never a server of a tenant', NEVER, { allowed: false, refused: false }],
  ['the Internet', PUBLIC, { allowed: true, refused: true }],
])('%s', (_, hosts, expected) => {
  test.each(hosts)('%s', (host) => {
    expect(mayReach(hostOf(host), 'allowed')).toBe(expected.allowed);
    expect(mayReach(hostOf(host), 'refused')).toBe(expected.refused);
    expect(mayReach(hostOf(host), [])).toBe(expected.refused);
  });
});

test('allows listed networks only, for every spelling of an address', () => {
  const networks = ['10.0.0.0/8', '169.254.0.0/16', 'fd12::/16', '192.168.7.7'];
  for (const host of ['10.1.2.3', '[::ffff:10.1.2.3]', '[64:ff9b::a01:203]', '169.254.7.7', '[fd12::5]', '192.168.7.7', '8.8.8.8']) {
    expect(mayReach(hostOf(host), networks), host).toBe(true);
  }
  for (const host of ['127.0.0.1', '11.0.0.1.', '192.168.7.8', '[fd13::5]', '[::1]', '169.254.169.254', '0.0.0.0']) {
    expect(mayReach(hostOf(host), networks), host).toBe(host === '11.0.0.1.');
  }
});

test('treats other texts as names', () => {
  for (const text of ['', 'localhost', 'example.com', '127.0.0.1:80', '::1%lo0%']) expect(mayReach(text, 'allowed')).toBe(false);
  // A scope does not make a link-local address another one.
  expect(mayReach('fe80::1%eth0', 'allowed')).toBe(false);
});

test('parses CIDRs and addresses', () => {
  expect(parseCidr('10.0.0.0/8')?.[1]).toBe(8);
  expect(parseCidr('10.0.0.1')?.[1]).toBe(32);
  expect(parseCidr('::1')?.[1]).toBe(128);
  for (const text of ['', 'all', '10.0.0.0/33', 'example.com', '10.0.0.0/8/8']) expect(parseCidr(text), text).toBeNull();
});
