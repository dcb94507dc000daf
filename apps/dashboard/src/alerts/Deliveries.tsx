import type { Delivery, Webhook } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { deliveriesQuery, redeliver } from '../data/alerts.ts';
import { formatAbsolute } from '../format/time.ts';
import { Loaded } from '../frame/Loaded.tsx';
import { PlainText } from '../text/PlainText.tsx';

/** The delivery log of a receiver: each message with its attempts. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const deliveries = useQuery(deliveriesQuery(webhook.id));
  return (
    <section aria-label={`Deliveries to ${webhook.name}`}>
      <h2 className="strong border-b border-line bg-paper-1 px-4 py-2">
        Deliveries to {webhook.name} <span className="label">newest first, kept for 30 days</span>
      </h2>
      <Loaded query={deliveries}>
        {(rows) =>
          rows.length === 0 ? (
            <p className="px-4 py-4 text-ink-3">No deliveries yet. Choose “Send a test” to see whether the receiver answers.</p>
          ) : (
            <ol>
              {rows.map((delivery) => (
                <DeliveryRow key={delivery.id} webhook={webhook} delivery={delivery} />
              ))}
            </ol>
          )
        }
      </Loaded>
    </section>
  );
}

const states = {
  delivered: { mark: '✓', className: 'text-good' },
  waiting: { mark: '○', className: 'text-ink-2' },
  failed: { mark: '▲', className: 'text-bad' },
} as const;

function DeliveryRow({ webhook, delivery }: { webhook: Webhook; delivery: Delivery }) {
  const { id, type, state, created_at: at, next_at: next, attempts, message_id: message, body } = delivery;
  const { mark, className } = states[state];
  const again = useMutation({ mutationFn: () => redeliver(webhook.id, id) });
  return (
    <li className="border-b border-line px-4 py-2">
      <details>
        <summary className="flex cursor-pointer flex-wrap items-baseline gap-x-3">
          <span className={`w-[88px] flex-none ${className}`}>
            <span aria-hidden="true">{mark}</span> {state}
          </span>
          <code>{type}</code>
          <time dateTime={at} className="tabular-nums text-ink-3">
            {formatAbsolute(at)}
          </time>
          <span className="text-ink-3">
            {attempts.length === 1 ? '1 attempt' : `${attempts.length} attempts`}
            {next !== null && `, next ${formatAbsolute(next)}`}
          </span>
          {state !== 'delivered' && attempts[0]?.error && <span className="min-w-0 text-ink-2">{attempts[0].error}</span>}
        </summary>
        <div className="mt-2 flex flex-col gap-2 pl-4">
          <p className="flex flex-wrap items-baseline gap-x-3">
            <code className="break-all text-ink-2">{message}</code>
            <button type="button" className="link" disabled={again.isPending || !webhook.enabled} onClick={() => again.mutate()}>
              Redeliver
            </button>
            <span role="alert" className="text-bad empty:hidden">
              {again.error?.message}
            </span>
          </p>
          <ol aria-label="Attempts" className="flex flex-col gap-1">
            {attempts.map((attempt) => (
              <li key={attempt.at}>
                <span className="tabular-nums text-ink-3">{formatAbsolute(attempt.at)}</span>{' '}
                <span className={attempt.error === null ? 'text-good' : 'text-bad'}>{attempt.status ?? 'No answer'}</span>{' '}
                <span className="text-ink-3 tabular-nums">{attempt.latency_ms} ms</span> {attempt.error}
                {attempt.response !== '' && (
                  <pre
                    className="code-block mt-1 max-h-[120px] overflow-auto whitespace-pre-wrap"
                    tabIndex={0}
                    aria-label="Answer of the receiver"
                  >
                    <PlainText text={attempt.response} />
                  </pre>
                )}
              </li>
            ))}
          </ol>
          <pre className="code-block max-h-[240px] overflow-auto whitespace-pre-wrap" tabIndex={0} aria-label="Body">
            {JSON.stringify(JSON.parse(body), null, 2)}
          </pre>
        </div>
      </details>
    </li>
  );
}
