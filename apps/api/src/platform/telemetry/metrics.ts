import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { type Counter, type Gauge, type Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import * as prometheus from 'prom-client';

/** Distinct values of a label that clients choose; later ones are counted as `other`. */
const MAX_VALUES = 200;
const MAX_VALUE_CHARS = 128;
const OTHER = 'other';

/** Seconds: from a quick route to a tool that runs for minutes. */
export const DURATION_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

/** Prometheus metrics of this process. Each service has its own registry, because tests run several services in one process. */
@Injectable()
export class Metrics implements OnApplicationShutdown {
  readonly registry = new Registry();
  readonly ingestEvents: Counter<'outcome'>;
  readonly httpDuration: Histogram<'method' | 'route' | 'status'>;

  constructor() {
    collectDefaultMetrics({ register: this.registry });
    this.ingestEvents = this.counter('palestra_ingest_events_total', 'Rollout events by what became of them', ['outcome']);
    this.httpDuration = this.histogram('palestra_http_request_duration_seconds', 'From the request to the last byte of its answer', [
      'method',
      'route',
      'status',
    ]);
  }

  counter<T extends string>(name: string, help: string, labelNames: T[]): Counter<T> {
    return new prometheus.Counter({ name, help, labelNames, registers: [this.registry] });
  }

  histogram<T extends string>(name: string, help: string, labelNames: T[]): Histogram<T> {
    return new prometheus.Histogram({ name, help, labelNames, buckets: DURATION_BUCKETS, registers: [this.registry] });
  }

  /** `collect` sets the gauge at each scrape. */
  gauge<T extends string>(name: string, help: string, labelNames: T[], collect: (gauge: Gauge<T>) => void | Promise<void>): Gauge<T> {
    return new prometheus.Gauge({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        return collect(this);
      },
    });
  }

  onApplicationShutdown(): void {
    this.registry.clear();
  }
}

/** Joins the metrics of two processes as text. The samples of a metric stay together, as the format demands. */
export function mergeMetrics(text: string, other: string): string {
  const others = byName(other);
  const merged = [...byName(text)].map(([name, lines]) => {
    const samples = others.get(name)?.filter((line) => !line.startsWith('#')) ?? [];
    others.delete(name);
    return [...lines, ...samples];
  });
  return [...merged, ...others.values()].map((lines) => `${lines.join('\n')}\n`).join('\n');
}

/** The lines of each metric: `# HELP` first, which names it. prom-client separates metrics by an empty line. */
const byName = (text: string): Map<string, string[]> =>
  new Map(
    text
      .trim()
      .split('\n\n')
      .filter((block) => block !== '')
      .map((block) => [block.split(' ', 3)[2]!, block.split('\n')]),
  );

/** Bounds the values of a label that clients choose: the first values stay, later ones become `other`. */
export class BoundedLabel {
  readonly #known = new Set<string>();

  constructor(readonly maxValues = MAX_VALUES) {}

  of(value: string): string {
    if (this.#known.has(value)) return value;
    if (this.#known.size >= this.maxValues || value.length > MAX_VALUE_CHARS) return OTHER;
    this.#known.add(value);
    return value;
  }
}
