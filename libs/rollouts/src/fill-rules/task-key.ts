import type { JsonObject } from '@palestra/protocol';
import { canonicalJson } from '../json/canonical-json.ts';
import { asCount, asObject, asText, intOfDigits, memberOf } from '../json/fields.ts';
import { sha256Hex } from '../json/hash.ts';
import type { NameParts } from '../provenance/name-regex.ts';
import type { FieldProvenance } from '../provenance/provenance.ts';
import { SLIME_TAIL, tailOfName } from '../provenance/source.ts';

/**
 * The task of a rollout. The key is equal for equal tasks of one organisation and has one of the forms
 * `index:{environment}:{split}:{index}`, `spec:{environment}:{sha256 of canonical task_spec}`, `hash:{environment}:{hash in the name}`,
 * `name:{environment}:{split}:{match of the owner's regex}`, `prompt:{environment}:{sha256}`. `%` and `:` are percent-encoded in all
 * parts.
 */
export interface TaskKey {
  key: string | null;
  index: number | null;
  provenance: FieldProvenance;
}

/**
 * Applies the first rule that fits (docs/reference/metrics.md#fill-rules). `prompt`: the first system and user content together.
 * `ledgerIndex`: index of the task in the split `start.split`, from the session that the rollout was matched with.
 */
export function taskKeyOf(
  start: JsonObject,
  info: JsonObject,
  name: NameParts | null,
  prompt: string | null,
  ledgerIndex: number | null = null,
): TaskKey {
  const environment = asText(memberOf(start, 'environment'));
  const split = asText(memberOf(start, 'split'));
  const rolloutName = asText(memberOf(start, 'rolloutName'));
  const byIndex = (index: number, provenance: FieldProvenance): TaskKey => ({
    key: keyText('index', environment, split, String(index)),
    index,
    provenance,
  });
  if (ledgerIndex !== null) return byIndex(ledgerIndex, { value: 'reported', rule: 'ledger' });
  const reported = asCount(memberOf(info, 'task_index'));
  if (reported !== null) return byIndex(reported, { value: 'reported', rule: 'rollout_info.task_index' });
  if (name?.task != null) {
    const parsed = { value: 'parsed', rule: 'settings.name_regex' } as const;
    const index = intOfDigits(name.task);
    return index === null ? { key: keyText('name', environment, split, name.task), index, provenance: parsed } : byIndex(index, parsed);
  }
  const index = intOfDigits(/^(\d{1,10})(?:-step\d{1,10}-r\d{1,10})?$/.exec(tailOfName(rolloutName, environment, split) ?? '')?.[1]);
  if (index !== null) return byIndex(index, { value: 'parsed', rule: 'name.index' });
  return byContent(start, environment, tailOfName(rolloutName, environment), prompt);
}

function byContent(start: JsonObject, environment: string | null, tail: string | null, prompt: string | null): TaskKey {
  const parsed = (rule: string, ...parts: (string | null)[]): TaskKey => ({
    key: keyText(...parts),
    index: null,
    provenance: { value: 'parsed', rule },
  });
  const spec = asObject(memberOf(start, 'task_spec'));
  if (Object.keys(spec).length > 0) return parsed('task_spec', 'spec', environment, sha256Hex(canonicalJson(spec)));
  const hash = SLIME_TAIL.exec(tail ?? '')?.[1];
  if (hash !== undefined) return parsed('name.hash', 'hash', environment, hash);
  if (prompt !== null && prompt !== '') return parsed('prompt', 'prompt', environment, sha256Hex(prompt));
  return { key: null, index: null, provenance: { value: 'unknown', rule: null } };
}

const keyText = (...parts: (string | null)[]): string =>
  parts.map((part) => (part ?? '').replaceAll(/[%:]/g, (char) => (char === '%' ? '%25' : '%3A'))).join(':');
