import { useChartContext } from './context.ts';

/** A point of a chart that a reader can open, also by keyboard. */
export interface PlotMark {
  x: number;
  /** Read aloud: `Reward fell by .310 at step 12`. */
  label: string;
  glyph: string;
  colour: string;
  isOpen: boolean;
  onPick: () => void;
}

/** The axis at the left of a plot, and the space at its right (Plot.tsx), px. */
const LEFT = 40;
const RIGHT = { step: 8, count: 8, time: 26 };

/** Buttons over a plot whose lines have no names at their ends, each with a rule at its x. */
export function PlotMarks({ marks }: { marks: readonly PlotMark[] }) {
  const { axis } = useChartContext();
  const [from, to] = axis.range;
  return (
    <div className="pointer-events-none absolute inset-y-0" style={{ left: LEFT, right: RIGHT[axis.kind] }}>
      {marks.map(({ x, label, glyph, colour, isOpen, onPick }) => (
        <span key={x} className="absolute inset-y-0" style={{ left: `${(100 * (x - from)) / (to - from)}%` }}>
          <span
            aria-hidden="true"
            className="absolute bottom-[20px] top-[8px] border-l border-dashed"
            style={{ borderColor: `var(--${colour})`, opacity: isOpen ? 1 : 0.5 }}
          />
          <button
            type="button"
            aria-label={`Show why: ${label}`}
            aria-expanded={isOpen}
            title={`${label}. Show why.`}
            onClick={onPick}
            className="pointer-events-auto absolute -top-[4px] h-[24px] w-[24px] -translate-x-1/2 text-[11px] leading-none"
            style={{ color: `var(--${colour})` }}
          >
            <span aria-hidden="true" className={`inline-block rounded-[3px] px-[4px] py-[3px] ${isOpen ? 'bg-paper-2' : 'bg-paper-0'}`}>
              {glyph}
            </span>
          </button>
        </span>
      ))}
    </div>
  );
}
