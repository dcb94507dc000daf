import { useState } from 'react';
import { formatCount, plural, UNKNOWN } from '../format/number.ts';
import { formatDenominator, formatFigure, formatInterval } from '../overview/figures.ts';
import { kpiRows } from './kpis.ts';
import { type ComparedRun, differing, type Setting } from './runs.ts';

/** A run's letter in its hue. */
export function RunMark({ run }: { run: Pick<ComparedRun, 'letter' | 'hue'> }) {
  return (
    <span className="inline-flex items-center gap-[5px]">
      <span aria-hidden="true" className="h-[9px] w-[9px] flex-none rounded-[2px]" style={{ background: `var(--${run.hue})` }} />
      <span className="strong">{run.letter}</span>
    </span>
  );
}

/** Figures of the runs side by side. Their differences are in `Differences`. */
export function KpiTable({ runs }: { runs: readonly ComparedRun[] }) {
  const rows = kpiRows(runs);
  return (
    <div className="min-w-0 overflow-x-auto px-4 py-3" tabIndex={0} role="region" aria-label="Figures side by side">
      <h2 className="panel-title">
        Figures <span className="label">of each run in the compared steps, with 95 % intervals</span>
      </h2>
      <table className="w-full whitespace-nowrap">
        <thead>
          <tr className="label text-left">
            <th scope="col" className="py-1 font-[450]">
              Figure
            </th>
            {runs.map((run) => (
              <th key={run.run.id} scope="col" className="num pl-4 pr-[124px] font-[450]" title={run.run.name}>
                <RunMark run={run} /> {run.short}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, label, values }) => (
            <tr key={key} className="border-t border-line hover:bg-paper-1" data-kpi={key}>
              <th scope="row" className="py-[4px] text-left font-[450] text-ink-2" title={key}>
                {label}
              </th>
              {values.map((kpi, i) => (
                <td key={i} className="num pl-4" title={kpi ? formatDenominator(kpi) : 'Not in this run'}>
                  {kpi ? formatFigure(key, kpi.value) : UNKNOWN}
                  <span className="label ml-2 inline-block w-[64px] text-left">{(kpi && formatInterval(kpi)) ?? ''}</span>
                  <span className="label inline-block w-[52px]">
                    {kpi && kpi.value !== null ? `n ${formatCount(kpi.denominator)}` : ''}
                  </span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Settings that differ between the runs; a button shows the others. */
export function ConfigDiff({ runs, settings }: { runs: readonly ComparedRun[]; settings: readonly Setting[] }) {
  const [all, setAll] = useState(false);
  const { differ, alike } = differing(settings);
  return (
    <div className="min-w-0 overflow-x-auto px-4 py-3" tabIndex={0} role="region" aria-label="Settings that differ">
      <h2 className="panel-title">
        Settings that differ{' '}
        {alike.length > 0 && (
          <button type="button" className="label link" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? 'Show only differences' : `Show ${alike.length} equal settings`}
          </button>
        )}
      </h2>
      {differ.length === 0 && <p className="text-ink-2">No settings differ: {plural(alike.length, 'setting')} compared.</p>}
      {(differ.length > 0 || all) && (
        <table className="w-full">
          <thead>
            <tr className="label text-left">
              <th scope="col" className="py-1 font-[450]">
                Setting
              </th>
              {runs.map((run) => (
                <th key={run.run.id} scope="col" className="pl-4 font-[450]" title={run.run.name}>
                  <RunMark run={run} /> {run.short}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {[...differ, ...(all ? alike : [])].map((setting) => (
              <tr
                key={setting.name}
                className={`border-t border-line align-top ${differ.includes(setting) ? '' : 'text-ink-3'}`}
                data-setting={setting.name}
              >
                <th scope="row" className="py-[4px] text-left font-[450] text-ink-2">
                  {setting.name}
                </th>
                {setting.values.map((value, i) => (
                  <td key={i} className="max-w-[260px] py-[4px] pl-4 [overflow-wrap:anywhere]">
                    {value}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
