import type { Environment } from '../definition.ts';

/** What an environment declares about its calls, as the session policy of a Palestra server spells it. */
export interface Guarantees {
  deterministic: boolean;
  /** Names of tools that can run again. */
  idempotent_tools: string[];
}

export function guaranteesOf({ deterministic = false, tools = {} }: Environment): Guarantees {
  const idempotent = Object.entries(tools).filter(([, tool]) => tool.idempotent);
  return { deterministic, idempotent_tools: idempotent.map(([name]) => name) };
}
