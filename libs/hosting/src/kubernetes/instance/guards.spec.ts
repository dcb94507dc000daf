import { expect, test } from 'vitest';
import { networkPolicy } from './guards.ts';

const ONE = { installation: 'one', callers: { pods: null, networks: [] }, registryNetworks: [] };

test('pods with an open network reach no private address and no metadata of a cloud', () => {
  const { egress, ingress } = networkPolicy('open', ONE).spec;
  const [{ ipBlock: ipv4 }, { ipBlock: ipv6 }] = (egress[0] as { to: unknown }).to as [
    { ipBlock: { except: string[] } },
    { ipBlock: { except: string[] } },
  ];
  expect(ipv4.except).toEqual(expect.arrayContaining(['10.0.0.0/8', '168.63.129.16/32', '169.254.0.0/16', '192.168.0.0/16']));
  expect(ipv4.except.every((cidr) => /^\d+\.\d+\.\d+\.\d+\/\d+$/.test(cidr))).toBe(true);
  expect(ipv6.except).toContain('fc00::/7');
  // No peer is named, so nobody connects.
  expect(ingress).toEqual([]);
  expect(networkPolicy('none', ONE).spec.egress).toEqual([]);
});
