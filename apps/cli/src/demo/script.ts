import type { Policy, PolicyAction, PolicyTurn } from '@palestra/client';
import type { JsonObject } from '@palestra/protocol';

/** A policy as one function: it yields an action and receives the result of its call. It ends with a message. */
export type Script = (start: Pick<PolicyTurn, 'prompt' | 'sample'>) => Generator<PolicyAction, string, string>;

/** Repeats the script with the results so far, because a policy keeps no state between turns. */
export function scripted(script: Script): Policy {
  return ({ prompt, sample, results }) => {
    const play = script({ prompt, sample });
    let next = play.next();
    for (const result of results) if (!next.done) next = play.next(result);
    return next.done ? { message: next.value } : next.value;
  };
}

export const call = (name: string, args: JsonObject, words: Omit<PolicyAction, 'toolCall'> = {}): PolicyAction => ({
  ...words,
  toolCall: { name, arguments: args },
});
