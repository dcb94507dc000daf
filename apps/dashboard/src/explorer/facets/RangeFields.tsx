import { type FormEvent, useState } from 'react';
import type { Bounds } from '../query/query-edit.ts';

const asText = (value: number | undefined): string => (value === undefined ? '' : String(value));
const hint = (value: number | null): string => (value === null ? '' : String(Number(value.toPrecision(4))));

/** Two fields for the ends of a range, with the range of the run as placeholders. Enter or leaving a field applies them. */
export function RangeFields(props: {
  name: string;
  bounds: Bounds;
  least: number | null;
  most: number | null;
  whole?: boolean;
  onChange: (bounds: Bounds) => void;
}) {
  const { name, bounds, least, most, whole = false, onChange } = props;
  const high = bounds.below === undefined ? asText(bounds.to) : `<${bounds.below}`;
  const [from, setFrom] = useState(asText(bounds.from));
  const [to, setTo] = useState(high);
  const written = `${asText(bounds.from)}..${high}`;
  const [seen, setSeen] = useState(written);
  if (seen !== written) {
    setSeen(written);
    setFrom(asText(bounds.from));
    setTo(high);
  }

  const read = (text: string): number | undefined => {
    const value = Number(text);
    return text.trim() === '' || !Number.isFinite(value) || (whole && !Number.isSafeInteger(value)) ? undefined : value;
  };
  const apply = (event?: FormEvent) => {
    event?.preventDefault();
    if (from === asText(bounds.from) && to === high) return;
    const low = read(from);
    const below = to.startsWith('<') ? read(to.slice(1)) : undefined;
    const top = below === undefined ? read(to) : undefined;
    const end = below ?? top;
    // Swapped ends are put in order.
    const [a, b] = low !== undefined && end !== undefined && low > end ? [end, low] : [low, top];
    onChange({ ...(a !== undefined && { from: a }), ...(b !== undefined && { to: b }), ...(below !== undefined && { below }) });
  };
  const field = 'input num h-[24px] w-full min-w-0 px-[6px]';
  return (
    <form onSubmit={apply} onBlur={() => apply()} className="mb-1 flex items-center gap-1">
      <input
        className={field}
        aria-label={`${name} from`}
        inputMode="decimal"
        placeholder={hint(least)}
        value={from}
        onChange={(event) => setFrom(event.target.value)}
      />
      <span className="text-ink-3">–</span>
      <input
        className={field}
        aria-label={`${name} to`}
        inputMode="decimal"
        placeholder={hint(most)}
        value={to}
        onChange={(event) => setTo(event.target.value)}
      />
      <button type="submit" className="sr-only">
        Apply
      </button>
    </form>
  );
}
