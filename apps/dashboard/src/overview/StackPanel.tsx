import { useMemo, useState } from 'react';
import { type Layer, StackChart } from '../charts/StackChart.tsx';
import { Panel, type FigureDefinition, Readout } from '../charts/Panel.tsx';
import type { Hover } from '../charts/Plot.tsx';
import { formatCount, formatShare } from '../format/number.ts';
import { useOverview } from './context.ts';
import { StepLink } from './StepLink.tsx';

interface Props {
  title: string;
  definitions: readonly FigureDefinition[];
  x: readonly number[];
  from: readonly number[];
  to: readonly number[];
  /** From bottom to top; values are shares of their column. */
  layers: readonly Layer[];
  /** What each column is a share of. */
  wholes: readonly (number | null | undefined)[];
  unit: 'groups' | 'rollouts';
  missing: React.ReactNode;
  /** Clauses of the rollouts of a layer; undefined if a query cannot select them. */
  clausesOf?: (layer: string | null) => readonly string[];
}

/** A panel of stacked shares that add up to 1 at each step. */
export function StackPanel({ title, definitions, x, from, to, layers, wholes, unit, missing, clausesOf }: Props) {
  const { nameOf, open } = useOverview();
  const [hover, setHover] = useState<Hover | null>(null);
  const names = useMemo(() => from.map((step, i) => nameOf(step, x[i] ?? step)), [from, x, nameOf]);
  const empty = from.length === 0 || layers.length === 0;
  const at = hover && hover.index < from.length ? hover.index : from.length - 1;
  const whole = unit === 'groups' ? 'Groups' : 'n';
  const valuesAt = (i: number) => [
    ...layers.map(({ name, values, colour, alpha }) => [name, formatShare(values[i], 1), colour, alpha] as const),
    [whole, formatCount(wholes[i]), ''] as const,
  ];
  const last = from.length - 1;
  const words = layers.map(({ name, values }) => `${name} from ${formatShare(values[0], 1)} to ${formatShare(values[last], 1)}`).join(', ');
  return (
    <Panel
      title={title}
      definitions={definitions}
      readout={empty ? null : <Readout at={names[at]!} values={valuesAt(at)} />}
      missing={empty ? missing : undefined}
      table={() => ({
        heads: ['Step', ...layers.map(({ name }) => name), whole],
        rows: from.map((step, i) => [
          <StepLink key="step" from={step} to={to[i]!} x={x[i] ?? step} />,
          ...valuesAt(i).map(([, text]) => text),
        ]),
      })}
    >
      <StackChart
        name={title}
        label={empty ? title : `${title} ${names[0]} to ${names[last]}: ${words}`}
        x={x}
        from={from}
        to={to}
        layers={layers}
        top={1}
        formatY={(value) => `${Math.round(100 * value)} %`}
        onHover={setHover}
        {...(open && {
          onPick: ({ index, layer }: Hover & { layer: string | null }) => open(from[index]!, to[index]!, clausesOf?.(layer)),
        })}
      />
    </Panel>
  );
}
