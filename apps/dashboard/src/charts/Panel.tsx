import { type ReactNode, useId, useState } from 'react';
import { Popover } from '../frame/Popover.tsx';

/** How a figure of a chart is computed. */
export interface FigureDefinition {
  name: string;
  formula: string;
  /** Lens, denominator, provenance and remarks, each in a few words. */
  notes: readonly string[];
}

export interface PanelTable {
  heads: readonly string[];
  /** One cell per head; the first cell names the row. */
  rows: readonly (readonly ReactNode[])[];
}

interface Props {
  /** The question that the chart answers. */
  title: string;
  definitions: readonly FigureDefinition[];
  /** The values under the pointer, else the last values. */
  readout: ReactNode;
  /** Shown at the right of the title. */
  note?: ReactNode;
  /** More actions at the right of the title. */
  actions?: ReactNode;
  /** Called when the reader opens the table. */
  table: () => PanelTable;
  /** Shown instead of an empty chart: what is missing and how to send it. */
  missing?: ReactNode;
  height?: number;
  children: ReactNode;
}

const explain = (definitions: readonly FigureDefinition[]) =>
  definitions.map(({ name, formula, notes }) => `${name}: ${formula}\n${notes.join(' · ')}`).join('\n\n');

/** A chart with its question, the definitions of its figures (on hover and click), its current values, and its numbers as a table. */
export function Panel({ title, definitions, readout, note, actions, table, missing, height = 150, children }: Props) {
  const [asTable, setAsTable] = useState(false);
  const id = useId();
  const empty = missing !== undefined && missing !== null;
  return (
    <section aria-labelledby={id} className="-mb-px -mr-px min-w-0 border-b border-r border-line px-3 pb-1 pt-2">
      <div className="flex h-[20px] items-center gap-2">
        <h2 id={id} className="strong flex min-w-0 truncate" title={explain(definitions)}>
          {definitions.length === 0 ? (
            title
          ) : (
            <Popover label={`How “${title}” is computed`} className="strong max-w-full truncate hover:text-accent" button={title}>
              <Definitions title={title} definitions={definitions} />
            </Popover>
          )}
        </h2>
        <span className="ml-auto flex min-w-0 flex-none items-center gap-2">
          {!empty && !asTable && note}
          {!empty && actions}
          {!empty && (
            <button type="button" className="label link" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
              {asTable ? 'Chart' : 'Table'}
              <span className="sr-only"> of {title}</span>
            </button>
          )}
        </span>
      </div>
      <div className="label mb-1 h-[28px] overflow-hidden tabular-nums">{empty ? null : readout}</div>
      <div style={{ height }}>
        {empty ? <Missing>{missing}</Missing> : asTable ? <NumbersTable title={title} {...table()} /> : children}
      </div>
    </section>
  );
}

function Definitions({ title, definitions }: { title: string; definitions: readonly FigureDefinition[] }) {
  return (
    <>
      <h3 className="strong mb-2">{title}</h3>
      <dl className="flex flex-col gap-2">
        {definitions.map(({ name, formula, notes }) => (
          <div key={name}>
            <dt className="strong">{name}</dt>
            <dd className="text-ink-2">{formula}</dd>
            {notes.map((one) => (
              <dd key={one} className="label">
                {one}
              </dd>
            ))}
          </div>
        ))}
      </dl>
    </>
  );
}

function Missing({ children }: { children: ReactNode }) {
  return <div className="flex h-full flex-col justify-center gap-1 rounded-[4px] bg-paper-1 px-4 text-ink-3">{children}</div>;
}

function NumbersTable({ title, heads, rows }: PanelTable & { title: string }) {
  return (
    <div className="h-full overflow-auto" tabIndex={0} role="region" aria-label={`${title} as a table`}>
      <table className="w-full border-collapse whitespace-nowrap">
        <thead className="sticky top-0 bg-paper-0">
          <tr className="label text-left">
            {heads.map((head, i) => (
              <th key={head} scope="col" className={`border-b border-line py-[2px] font-[450] ${i > 0 ? 'num pl-3' : ''}`}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, y) => (
            <tr key={y} className="hover:bg-paper-1">
              {row.map((cell, x) =>
                x === 0 ? (
                  <th key={x} scope="row" className="text-left font-[450] text-ink-2 first-letter:uppercase">
                    {cell}
                  </th>
                ) : (
                  <td key={x} className="num pl-3">
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Values at one x: `step 12  median .31  n 64`, with the colour and opacity of their lines or layers. */
export function Readout({
  at,
  values,
}: {
  at: string;
  values: readonly (readonly [name: string, text: string, colour?: string, alpha?: number])[];
}) {
  return (
    <>
      <span className="mr-[8px] inline-block text-ink-2 first-letter:uppercase">{at}</span>
      {values.map(([name, text, colour, alpha = 1]) => (
        <span key={name} className="mr-[8px] inline-block max-w-full truncate align-top">
          {colour && (
            <span
              aria-hidden="true"
              className="mr-[3px] inline-block h-[7px] w-[7px] rounded-[2px]"
              style={{ background: `var(--${colour})`, opacity: alpha }}
            />
          )}
          {name} <span className="text-ink-1">{text}</span>
        </span>
      ))}
    </>
  );
}
