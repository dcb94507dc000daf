import type { EnvironmentDetails, EnvironmentReport } from '@palestra/protocol';
import { formatCount, formatReward, formatShare, plural } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { reportScale, sortedChecks, summaryOf } from './report.ts';

type Check = EnvironmentReport['checks'][number];
type Scored = EnvironmentReport['players'][number];

const marks: Record<Check['status'], [mark: string, word: string, className: string]> = {
  passed: ['●', 'Passed', 'text-good'],
  failed: ['✕', 'Failed', 'text-bad'],
  skipped: ['○', 'Skipped', 'text-ink-3'],
};

/** What the owner says that validation found and scripted players reach, for the newest version with a report. */
export function ReportTab({ environment: { report, owner, name, version } }: { environment: EnvironmentDetails }) {
  const command = `palestra env validate --environment ${owner}/${name} --report`;
  if (report === null)
    return (
      <div className="p-4 text-ink-3">
        <p>This version has no report. Validation plays sampled tasks and sends one:</p>
        <pre className="code-block mt-2 inline-block max-w-full whitespace-pre-wrap [overflow-wrap:anywhere]" tabIndex={0}>
          {command}
        </pre>
      </div>
    );
  return (
    <div className="h-full overflow-auto" tabIndex={0} role="region" aria-label="Report">
      {report.version !== version && (
        <p className="flex gap-x-[10px] border-b border-line bg-bad-wash px-4 py-2">
          <span className="text-bad" aria-hidden="true">
            ▲
          </span>
          <span className="min-w-0 [overflow-wrap:anywhere]">
            This report is about version {report.version}. The newest version, {version}, has none and may give other results. Its owner can
            send one: <span className="mono text-[12px]">{command}</span>
          </span>
        </p>
      )}
      <div className="max-w-[1080px] px-4 py-3">
        <p className="text-ink-2">
          {summaryOf(report)} · version {report.version} · kit {report.kit}
        </p>
        <p className="text-ink-3">
          Reported by the owner, {owner}, <Age iso={report.received_at} />. Palestra does not check reports.
        </p>
        {report.players.length > 0 && <Players report={report} />}
        <h2 className="mb-1 mt-5 strong">Checks</h2>
        <ul>
          {sortedChecks(report).map((check) => (
            <CheckRow key={check.id} check={check} />
          ))}
        </ul>
      </div>
    </div>
  );
}

function CheckRow({ check: { id, title, status, detail } }: { check: Check }) {
  const [mark, word, className] = marks[status];
  return (
    <li className="grid grid-cols-[84px_minmax(0,1fr)] gap-x-2 border-t border-line py-[7px]">
      <span className={className}>
        <span aria-hidden="true">{mark}</span> {word}
      </span>
      <div className="min-w-0 [overflow-wrap:anywhere]">
        <p className="flex flex-wrap items-baseline gap-x-3">
          <span>{title}</span>
          <span className="mono text-[11px] text-ink-3">{id}</span>
        </p>
        <p className={status === 'failed' ? 'text-ink-1' : 'text-ink-3'}>{detail}</p>
      </div>
    </li>
  );
}

function Players({ report }: { report: EnvironmentReport }) {
  const scale = reportScale(report);
  const [{ split, tasks }] = report.players as [Scored, ...Scored[]];
  return (
    <>
      <h2 className="mb-1 mt-5 strong">Scripted players</h2>
      <p className="mb-2 text-ink-3">
        Mean total reward of an episode with its 95 % interval, in {plural(tasks, 'task')} of {split}. Solved: share of the episodes that
        reached {formatReward(scale.high)}.
      </p>
      <table className="w-full table-fixed border-collapse">
        <thead>
          <tr className="text-left text-ink-3">
            <th scope="col" className="py-1 font-[450]">
              Player
            </th>
            <th scope="col" className="w-[84px] py-1 text-right font-[450]">
              Mean
            </th>
            <th scope="col" className="w-[130px] py-1 text-right font-[450] max-[600px]:hidden">
              Interval
            </th>
            <th
              scope="col"
              className="w-[26%] py-1 pl-4 font-[450] max-[600px]:hidden"
              aria-label={`From ${formatReward(scale.low)} to ${formatReward(scale.high)}`}
            >
              <span className="flex justify-between tabular-nums" aria-hidden="true">
                <span>{formatReward(scale.low)}</span>
                <span>{formatReward(scale.high)}</span>
              </span>
            </th>
            <th scope="col" className="w-[76px] py-1 text-right font-[450]">
              Solved
            </th>
          </tr>
        </thead>
        <tbody>
          {report.players.map((player) => (
            <PlayerRow key={`${player.name} ${player.split}`} player={player} position={scale.position} />
          ))}
        </tbody>
      </table>
    </>
  );
}

function PlayerRow({ player, position }: { player: Scored; position: (reward: number) => number }) {
  const { name, description, mean, low, high, solved, tasks, samples } = player;
  const [from, to, at] = [low, high, mean].map(position) as [number, number, number];
  return (
    <tr className="border-t border-line align-top" title={`${formatCount(tasks)} tasks, ${plural(samples, 'episode')} each`}>
      <th scope="row" className="py-[7px] pr-3 text-left font-normal [overflow-wrap:anywhere]">
        <span className="strong">{name}</span>
        <span className="block text-[12px] text-ink-3">{description}</span>
      </th>
      <td className="py-[7px] text-right tabular-nums strong">{formatReward(mean)}</td>
      <td className="py-[7px] text-right tabular-nums text-ink-3 max-[600px]:hidden">
        {formatReward(low)} – {formatReward(high)}
      </td>
      <td className="py-[7px] pl-4 max-[600px]:hidden" aria-hidden="true">
        <div className="relative mt-[9px] h-[2px] bg-line">
          <div
            className="absolute -top-[1px] h-[4px] rounded-[2px] bg-ink-3"
            style={{ left: `${from}%`, width: `${Math.max(0, to - from)}%` }}
          />
          <div className="absolute -top-[4px] h-[10px] w-[3px] -translate-x-1/2 rounded-[1px] bg-accent" style={{ left: `${at}%` }} />
        </div>
      </td>
      <td className="py-[7px] text-right tabular-nums">{formatShare(solved, 1)}</td>
    </tr>
  );
}
