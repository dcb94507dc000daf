import type { SearchPage } from '@palestra/protocol';
import { type MouseEvent, useState } from 'react';
import { formatCount } from '../../format/number.ts';

type Steps = NonNullable<SearchPage['steps']>;
const HEIGHT = 44;
/** Maximum width of a bar: few steps make a narrow chart. */
const BAR_PX = 18;

/** The number of hits at each step. A click on a bar adds its step to the query. */
export function HitCurve({ steps, capped, onStep }: { steps: Steps; capped: boolean; onStep: (step: number) => void }) {
  const [asTable, setAsTable] = useState(false);
  const known = steps.filter((one): one is { step: number; hits: number } => one.step !== null).toSorted((a, b) => a.step - b.step);
  const elsewhere = steps.find(({ step }) => step === null)?.hits ?? 0;
  const first = known[0];
  const last = known.at(-1);
  if (!first || !last) return null;
  const most = Math.max(...known.map(({ hits }) => hits));
  return (
    <section aria-label="Hits per step" className="border-b border-line px-4 pb-2 pt-3">
      <h2 className="label mb-1 flex gap-2">
        <span>Hits per step</span>
        <span>
          · first at step {first.step} · maximum {formatCount(most)}
          {capped ? ` · counted up to step ${last.step}` : ''}
          {elsewhere > 0 ? ` · ${formatCount(elsewhere)} without a step` : ''}
        </span>
        <button type="button" className="link ml-auto" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
          {asTable ? 'Chart' : 'Table'}
        </button>
      </h2>
      {asTable ? <AsTable steps={known} onStep={onStep} /> : <Bars steps={known} most={most} onStep={onStep} />}
    </section>
  );
}

type Known = readonly { step: number; hits: number }[];

function Bars({ steps, most, onStep }: { steps: Known; most: number; onStep: (step: number) => void }) {
  const low = steps[0]!.step;
  const span = steps.at(-1)!.step - low + 1;
  const [at, setAt] = useState<number | null>(null);
  const hits = steps.find(({ step }) => step === at)?.hits ?? 0;
  const stepOf = (event: MouseEvent<Element>) => {
    const box = event.currentTarget.getBoundingClientRect();
    return Math.min(low + span - 1, low + Math.floor(((event.clientX - box.left) / box.width) * span));
  };
  const text = `Messages found at steps ${low} to ${low + span - 1}, at most ${most} at one step`;
  return (
    <div style={{ maxWidth: Math.max(240, span * BAR_PX) }}>
      <svg
        role="img"
        aria-label={text}
        width="100%"
        height={HEIGHT}
        viewBox={`0 0 ${span} ${HEIGHT}`}
        preserveAspectRatio="none"
        className="block cursor-pointer text-good"
        onMouseMove={(event) => setAt(stepOf(event))}
        onMouseLeave={() => setAt(null)}
        onClick={(event) => onStep(stepOf(event))}
      >
        {at !== null && <rect x={at - low} y="0" width="1" height={HEIGHT} fill="var(--paper-2)" />}
        {steps.map((one) => {
          const height = Math.max(1, (one.hits / most) * (HEIGHT - 2));
          return <rect key={one.step} x={one.step - low + 0.1} y={HEIGHT - height} width="0.8" height={height} fill="currentColor" />;
        })}
      </svg>
      <div className="label flex justify-between">
        <span>{low}</span>
        <span>{at === null ? 'Click to filter by step' : `Step ${at}: ${formatCount(hits)}`}</span>
        <span>{low + span - 1}</span>
      </div>
    </div>
  );
}

function AsTable({ steps, onStep }: { steps: Known; onStep: (step: number) => void }) {
  return (
    <ul className="flex max-h-[132px] flex-wrap gap-1 overflow-y-auto">
      {steps.map(({ step, hits }) => (
        <li key={step}>
          <button type="button" className="chip tabular-nums hover:text-ink-1" onClick={() => onStep(step)}>
            Step {step} <span className="strong">{formatCount(hits)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
