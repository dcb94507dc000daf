import type { ToolCheck } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { toolCheckQuery } from '../data/insights.ts';
import { formatCount, formatShare, plural } from '../format/number.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { useRun } from '../run/context.ts';
import { PlainText } from '../text/PlainText.tsx';

/** The number of newest calls that are validated. */
const CHECKED_CALLS = 200;
const EXAMPLES = 3;

/** Validates the newest calls of a tool against its schema. */
export function Arguments({ tool }: { tool: string }) {
  const { run, filter } = useRun();
  const check = useQuery(toolCheckQuery(run.id, tool, filter, CHECKED_CALLS));
  return (
    <section aria-label="Arguments against the schema" className="border-t border-line px-3 py-3">
      <h3 className="panel-title">Do the arguments match its schema?</h3>
      {check.error && <ErrorState error={check.error} retry={() => void check.refetch()} />}
      {check.data ? <Verdict data={check.data} /> : !check.error && <SkeletonRows count={3} />}
    </section>
  );
}

function Verdict({ data }: { data: ToolCheck }) {
  const unread = [
    data.without_schema > 0 && `${formatCount(data.without_schema)} without a published schema`,
    data.unread > 0 && `${formatCount(data.unread)} too long`,
  ].filter(Boolean);
  return (
    <>
      <p className="text-ink-2">
        Checked the newest {plural(data.calls, 'call')} in {plural(data.rollouts, 'rollout')}
        {data.incomplete && ' (stopped at the time limit)'}
        {unread.length > 0 && <> · not checked: {unread.join(', ')}</>}
      </p>
      {data.checked === 0 ? (
        <p className="mt-1 text-ink-3">
          {data.calls === 0 ? 'No calls match the filter.' : 'Not checked: no environment of these calls publishes a schema of this tool.'}
        </p>
      ) : (
        <p className="mt-1" data-verdict>
          <span className={data.invalid > 0 ? 'strong text-bad' : 'strong'}>{formatCount(data.invalid)}</span> of{' '}
          {formatCount(data.checked)} checked calls violate the schema ({formatShare(data.invalid, data.checked)})
        </p>
      )}
      {data.violations.length > 0 && (
        <table className="mt-2 w-full">
          <caption className="sr-only">First schema violation of each call</caption>
          <thead>
            <tr className="label text-left">
              <th scope="col" className="num pr-3 font-[450]">
                Calls
              </th>
              <th scope="col" className="font-[450]">
                Path
              </th>
              <th scope="col" className="font-[450]">
                Violation
              </th>
              <th scope="col" className="font-[450]">
                Newest calls
              </th>
            </tr>
          </thead>
          <tbody>
            {data.violations.map(({ path, rule, message, count, examples }) => (
              <tr key={`${path} ${rule} ${message}`} className="border-t border-line align-top">
                <td className="num py-1 pr-3">{formatCount(count)}</td>
                <td className="mono min-w-[84px] py-1 pr-3 [overflow-wrap:anywhere]">
                  {path === '' ? 'arguments' : <PlainText text={path.slice(0, 200)} />}
                </td>
                <td className="py-1 pr-3 [overflow-wrap:anywhere]" title={rule}>
                  <PlainText text={message} />
                </td>
                <td className="py-1">
                  {examples.slice(0, EXAMPLES).map(({ rollout, index }) => (
                    <Link
                      key={`${rollout} ${index}`}
                      to="/rollout/$id"
                      params={{ id: rollout }}
                      hash={`m-${index}`}
                      search={{}}
                      className="link mono mr-2"
                    >
                      {rollout.slice(0, 6)}
                      <span className="sr-only"> message {index}</span>
                    </Link>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {data.schemas.map(({ environment, schema }) => (
        <details key={environment ?? ''} className="mt-2">
          <summary className="link">Schema in {environment ?? 'an unnamed environment'}</summary>
          <pre className="code-block mt-1 max-h-[260px] overflow-auto" tabIndex={0}>
            <PlainText text={JSON.stringify(schema, null, 2).slice(0, 20_000)} />
          </pre>
          {environment?.split('/').length === 2 && (
            <Link
              to="/environments/$owner/$name"
              params={{ owner: environment.split('/')[0]!, name: environment.split('/')[1]! }}
              search={{ tab: 'tools' }}
              className="link"
            >
              Show all tools
            </Link>
          )}
        </details>
      ))}
    </>
  );
}
