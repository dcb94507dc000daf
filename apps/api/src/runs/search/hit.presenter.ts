import type { StoredMessageRow } from '../../store/storage/transcript-reader.service.ts';
import type { HitRow } from './search.sql.ts';
import type { Snippet } from './snippet.ts';

export const headOf = ({ name, summary }: StoredMessageRow): string => [name, summary].filter((part) => part !== null).join(' ');
/** The text of a message that is searched. */
export const textOf = (row: StoredMessageRow): string => row.content ?? headOf(row);

export function presentHit(hit: HitRow, row: StoredMessageRow | null, snippet: Snippet) {
  const { id, run_id, run_name, rollout_name, step, reward, index } = hit;
  return (
    row && {
      run: { id: run_id, name: run_name },
      rollout: id,
      rollout_name,
      step,
      reward,
      index,
      type: row.type,
      name: row.name,
      ...snippet,
    }
  );
}
