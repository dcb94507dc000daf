import type { Egress } from '../provider/provider.port.ts';
import type { WantedNetwork } from './task-config.ts';

const covers = (rule: string, host: string): boolean =>
  rule === host || (rule.startsWith('*.') && host.endsWith(rule.slice(1)) && host !== rule.slice(1));

/** What a task may reach: what it wants, as far as the settings of its environment allow it. */
export function egressOfTask(wanted: WantedNetwork, allowed: Egress): Egress {
  if (wanted.kind === 'none' || allowed.kind === 'none') return { kind: 'none' };
  if (wanted.kind === 'open') return allowed;
  if (allowed.kind === 'open') return wanted;
  const hosts = new Set([
    ...wanted.hosts.filter((host) => allowed.hosts.some((rule) => covers(rule, host))),
    ...allowed.hosts.filter((host) => wanted.hosts.some((rule) => covers(rule, host))),
  ]);
  return hosts.size === 0 ? { kind: 'none' } : { kind: 'hosts', hosts: [...hosts] };
}
