import { ALERT_METRICS } from '@palestra/protocol';
import { type ReactNode, useMemo, useState } from 'react';
import { type PlotMark, PlotMarks } from '../charts/PlotMarks.tsx';
import { AlertMe } from '../alerts/AlertMe.tsx';
import { opOf } from '../alerts/form-state.ts';
import { type Band, type Line, LineChart } from '../charts/LineChart.tsx';
import type { Hover } from '../charts/Plot.tsx';
import { Panel, type FigureDefinition, Readout } from '../charts/Panel.tsx';
import { curveInWords, type Curves, hasValues } from './curves.ts';
import { type Curve, definitionOf, formatAxis, formatFigure, unitOf } from './figures.ts';
import { useOverview } from './context.ts';
import { useRun } from '../run/context.ts';
import { StepLink } from './StepLink.tsx';

export interface CurveEntry {
  name: string;
  series: Curve | undefined;
  colour: string;
  /** Draws the name at the end of the line. */
  labelled?: boolean;
}

export interface BandEntry {
  name: string;
  low: Curve | undefined;
  high: Curve | undefined;
  colour: string;
  alpha: number;
}

interface Props {
  title: string;
  curves: Curves;
  entries: readonly CurveEntry[];
  bands?: readonly BandEntry[];
  y: 'unit' | 'zero' | 'fit';
  note?: ReactNode;
  /** Shown instead of an empty chart: what is missing and how to send it. */
  missing: ReactNode;
  /** Clauses that a click adds to the clause of the step. */
  clauses?: readonly string[];
  env?: string | null;
  /** Points that open something, for a chart without names at the ends of its lines. */
  marks?: readonly PlotMark[];
}

const NO_BANDS: readonly BandEntry[] = [];

/** A panel whose lines over the steps of a run answer one question. */
export function CurvePanel({ title, curves, entries, bands = NO_BANDS, y, note, missing, clauses, env, marks }: Props) {
  const { run, filter } = useRun();
  const { nameOf, open } = useOverview();
  const [hover, setHover] = useState<Hover | null>(null);
  const shown = useMemo(() => entries.filter(({ series }) => hasValues(series)), [entries]);
  const lines = useMemo<Line[]>(
    () =>
      shown.map(({ name, series, colour, labelled }) => ({ name, values: curves.values(series), colour, ...(labelled && { labelled }) })),
    [shown, curves],
  );
  const areas = useMemo<Band[]>(
    () => bands.map(({ low, high, colour, alpha }) => ({ low: curves.values(low), high: curves.values(high), colour, alpha })),
    [bands, curves],
  );
  const denominators = useMemo(() => curves.denominators(shown[0]?.series), [curves, shown]);
  const names = useMemo(() => curves.steps.map((step, i) => nameOf(step, curves.x[i]!)), [curves, nameOf]);
  const at = hover && hover.index < curves.steps.length ? hover.index : curves.steps.length - 1;
  const keyOf = (i: number) => shown[i]!.series!.key;
  const unit = shown[0] ? unitOf(keyOf(0)) : 'rollouts';
  const whole = unit === null || unit === 'rollouts' ? 'n' : unit;
  const valuesAt = (i: number, format = formatFigure) => [
    ...lines.map(({ name, values, colour }, line) => [name, format(keyOf(line), values[i]), lines.length > 1 ? colour : ''] as const),
    ...areas.map(({ low, high }, band) => [bands[band]!.name, `${format('', low[i])}–${format('', high[i])}`, ''] as const),
    [whole, formatFigure('groups', denominators[i]), ''] as const,
  ];
  const definitions: FigureDefinition[] = [
    ...shown.map(({ series }) => series!),
    ...bands.flatMap(({ low, high }) => [low, high].filter(hasValues)),
  ].map(definitionOf);
  const table = () => ({
    heads: ['Step', ...lines.map(({ name }) => name), ...bands.map(({ name }) => name), whole],
    rows: curves.steps.map((step, i) => [
      <StepLink key="step" from={step} to={step} x={curves.x[i]!} {...(env !== undefined && { env })} />,
      ...valuesAt(i).map(([, text]) => text),
    ]),
  });
  const empty = shown.length === 0 || curves.steps.length === 0;
  const watched = shown.flatMap(({ series }) => ALERT_METRICS.find((metric) => metric === series!.key) ?? [])[0];
  const label = `${title} ${lines.map(({ name, values }, i) => curveInWords(name, values, names, (value) => formatFigure(keyOf(i), value))).join('. ')}`;
  return (
    <Panel
      title={title}
      definitions={definitions}
      note={note}
      actions={
        watched && (
          <AlertMe run={run.name} on={title} preset={{ subject: watched, op: opOf(watched), environment: env ?? filter.env ?? '' }} />
        )
      }
      readout={empty ? null : <Readout at={names[at]!} values={valuesAt(at, formatFigure)} />}
      table={table}
      missing={empty ? missing : undefined}
    >
      <div className="relative">
        <LineChart
          name={title}
          label={label}
          x={curves.x}
          steps={curves.steps}
          lines={lines}
          bands={areas}
          hollow={curves.hollow}
          formatY={(value) => formatAxis(shown[0]?.series?.key ?? '', value)}
          y={y}
          onHover={setHover}
          {...(open && { onPick: ({ index }: Hover) => open(curves.steps[index]!, curves.steps[index]!, clauses) })}
        />
        {marks && marks.length > 0 && <PlotMarks marks={marks} />}
      </div>
    </Panel>
  );
}
