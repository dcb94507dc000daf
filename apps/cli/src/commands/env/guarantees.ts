import type { PalestraClient } from '@palestra/client';
import { readBoundedText } from '@palestra/kit';
import { z } from 'zod';

/** What the code of an environment declares about its calls. */
const guaranteesSchema = z.object({ deterministic: z.boolean(), idempotent_tools: z.array(z.string()).max(1_000) });
type Guarantees = z.infer<typeof guaranteesSchema>;

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1_000_000;

/** Asks a server of the kit. Null for every other server, which declares nothing. */
export async function declaredGuarantees(url: string, signal: AbortSignal): Promise<Guarantees | null> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const answer = await fetch(`${url}/guarantees`, { signal: deadline });
    const read = guaranteesSchema.safeParse(JSON.parse(await readBoundedText(answer.body, MAX_BYTES)));
    return answer.ok && read.success ? read.data : null;
  } catch {
    signal.throwIfAborted();
    return null;
  }
}

/**
 * Makes the session policy of an environment agree with its code; other settings stay. Returns whether it changed. The code decides also over
 * an earlier `palestra env set`, because a policy that promises more than the code repeats calls that must not run twice.
 */
export async function applyGuarantees(client: PalestraClient, environment: string, declared: Guarantees): Promise<boolean> {
  const { sessions } = await client.environments.get(environment);
  const { deterministic = false, idempotent_tools: tools = [] } = sessions ?? {};
  const isSame = deterministic === declared.deterministic && String(tools.toSorted()) === String(declared.idempotent_tools.toSorted());
  if (isSame) return false;
  await client.environments.setSessions(environment, { ...sessions, ...declared });
  return true;
}
