import type { SessionPolicyView } from '@palestra/protocol';
import { environmentName } from '../environment-name.ts';
import { printable, printOne, type Printed } from '../output.ts';
import { withClient } from '../settings.ts';

interface Options extends Printed {
  capacity?: number | 'none';
  heartbeat?: number;
  idle?: number;
  setup?: number;
  call?: number;
  silence?: number;
  deterministic?: boolean;
  idempotent?: string[];
  reset: boolean;
}

/** `palestra env set`: changes the session policy of an environment. */
export async function setPolicy(target: string, options: Options): Promise<void> {
  const view = await withClient(async (client) => {
    const environment = await environmentName(client, target);
    const before = options.reset ? null : (await client.environments.get(environment)).sessions;
    const after = { ...before, ...policyOf(options) };
    return client.environments.setSessions(environment, Object.keys(after).length === 0 ? null : after);
  });
  const sessions = view.sessions ?? {};
  await printOne(options, sessions, () => void process.stdout.write(`${printable(JSON.stringify(sessions))}\n`));
}

function policyOf({ capacity, heartbeat, idle, setup, call, silence, deterministic, idempotent }: Options): SessionPolicyView {
  const values = {
    capacity: capacity === 'none' ? null : capacity,
    heartbeat_timeout_s: heartbeat,
    idle_timeout_s: idle,
    setup_timeout_s: setup,
    call_timeout_s: call,
    silence_timeout_s: silence,
    deterministic,
    idempotent_tools: idempotent,
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
