import type { Group } from '@palestra/protocol';

const MAX_PIPS = 12;

/** One dot per rollout: filled if solved, hollow if not, hatched if unscored. Large groups are a bar of shares. */
export function Pips({ group }: { group: Pick<Group, 'received' | 'scored' | 'successes' | 'expected'> }) {
  const { received, scored, successes, expected } = group;
  const waiting = Math.max(0, (expected ?? received) - received);
  const failed = scored - successes;
  const unscored = received - scored;
  const text = [
    `${successes} of ${received} solved`,
    unscored > 0 && `${unscored} unscored`,
    waiting > 0 && `${waiting} not received`,
  ].filter(Boolean);
  if (received > MAX_PIPS)
    return (
      <span className="flex items-center gap-2" role="img" aria-label={text.join(', ')} title={text.join(', ')}>
        <span className="flex h-[8px] w-[96px] overflow-hidden rounded-[2px] border border-bad">
          <span className="bg-good" style={{ width: `${(100 * successes) / received}%` }} />
          <span style={{ width: `${(100 * failed) / received}%` }} />
          <span className="hatched" style={{ width: `${(100 * unscored) / received}%` }} />
        </span>
        <span className="label tabular-nums">
          {successes} of {received}
        </span>
      </span>
    );
  const kinds = [
    ...Array.from({ length: successes }, () => 'full'),
    ...Array.from({ length: failed }, () => 'empty'),
    ...Array.from({ length: unscored }, () => 'none'),
  ];
  return (
    <span className="inline-flex items-center gap-[4px] align-middle" role="img" aria-label={text.join(', ')} title={text.join(', ')}>
      {kinds.map((kind, i) => (
        <span key={i} className={`pip ${kind}`} />
      ))}
      {waiting > 0 && <span className="label">+{waiting}</span>}
    </span>
  );
}
