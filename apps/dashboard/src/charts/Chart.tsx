import { type ReactNode, useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { token, useTheme } from '../theme/theme.ts';

/** A uPlot canvas that follows its width and the theme. `options` is called at each (re)build, so colours are current. */
export function Chart({
  options,
  data,
  height,
  label,
}: {
  options: () => Omit<uPlot.Options, 'width' | 'height'>;
  data: uPlot.AlignedData;
  height: number;
  label: string;
}) {
  const holder = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const build = useRef(options);
  useEffect(() => {
    build.current = options;
  });
  useEffect(() => {
    const element = holder.current!;
    const plot = new uPlot({ ...build.current(), width: element.clientWidth, height }, data, element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [data, height, theme]);
  return <div ref={holder} role="img" aria-label={label} style={{ height }} />;
}

/** Axes as look.md wants them: 11 px labels, gridlines at 6 %, no ticks. */
export function axes(formatX: (value: number) => string, formatY: (value: number) => string): uPlot.Axis[] {
  const common = { stroke: token('ink-3'), font: `450 11px ${token('font-interface')}`, ticks: { show: false } };
  return [
    { ...common, grid: { show: false }, size: 20, gap: 4, space: 48, values: (_, values) => values.map(formatX) },
    { ...common, grid: { stroke: token('grid'), width: 1 }, size: 30, gap: 6, space: 28, values: (_, values) => values.map(formatY) },
  ];
}

/** A panel whose title is the question it answers, with the chart or, on request, its numbers as a table. */
export function ChartPanel({
  title,
  explain,
  note,
  table,
  children,
}: {
  title: string;
  explain: string;
  note?: string;
  table?: { heads: string[]; rows: string[][] };
  children: ReactNode;
}) {
  const [asTable, setAsTable] = useState(false);
  return (
    <section className="min-w-0 bg-paper-0 px-4 pb-[10px] pt-[10px]">
      <h2 className="panel-title">
        <span className="truncate" title={explain}>
          {title}
        </span>
        <span className="label ml-auto truncate">{note}</span>
        {table && (
          <button type="button" className="label link flex-none" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            {asTable ? 'chart' : 'table'}
          </button>
        )}
      </h2>
      <div className="h-[136px]">
        {asTable && table ? (
          <div className="h-full overflow-auto" tabIndex={0} role="region" aria-label={`${title} as a table`}>
            <table className="w-full">
              <thead>
                <tr className="label text-left">
                  {table.heads.map((head, i) => (
                    <th key={head} className={`font-[450] ${i > 0 ? 'num' : ''}`}>
                      {head}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {table.rows.map((row, y) => (
                  <tr key={y}>
                    {row.map((cell, x) => (
                      <td key={x} className={x > 0 ? 'num' : ''}>
                        {cell}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          children
        )}
      </div>
    </section>
  );
}
