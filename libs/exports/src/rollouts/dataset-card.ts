import { formatReward } from '@palestra/kit/reward-text';
import { PROVENANCES, type RolloutExportFormat } from '@palestra/protocol';
import { type Column, EXPORT_COLUMNS, MESSAGE_COLUMNS } from './narrow-columns.ts';
import { type ExportFigures, rewardStd } from './statistics.ts';

/** The origin of an export, sufficient to repeat it. */
export interface ExportLineage {
  export_id: string;
  format: RolloutExportFormat;
  org: string;
  /** null: all runs of the organisation. */
  run: string | null;
  /** The query, as printed by the parser. */
  query: string;
  canonical_query: string;
  lens: string;
  /** Description of the lens columns. */
  lens_rule: string;
  redacted: boolean;
  /** Rollouts up to this position in the order of arrival are included. */
  as_of: string;
  /** ISO 8601. */
  created_at: string;
}

const FEATURE_TYPES: Record<Column['type'], string> = {
  string: 'string',
  json: 'string',
  int32: 'int32',
  int64: 'int64',
  double: 'float64',
  boolean: 'bool',
  timestamp: 'timestamp[ms, tz=UTC]',
  strings: 'string',
};

/** README.md of a Hugging Face dataset folder: YAML front matter for `datasets`, then the facts that people need first. */
export function datasetCard(lineage: ExportLineage, figures: ExportFigures): string {
  return `${frontMatter(lineage, figures)}
# Rollouts of ${markdown(lineage.run ?? `all runs of ${lineage.org}`)}

Exported by Palestra on ${lineage.created_at}. One row is one rollout with its messages.

| | |
| --- | --- |
${Object.entries(facts(lineage, figures))
  .map(([name, value]) => `| ${name} | ${markdown(String(value))} |`)
  .join('\n')}

## Environments

${list(figures.environments)}

## Runs

${list(figures.runs)}

## How fields are known

Each \`*_prov\` column says how its field came to be known: \`reported\` by the trainer, \`parsed\` out of another field, \`inferred\` from counts,
order and times (it can be wrong), or \`unknown\` (then the field is null, never 0).

| field | ${STRONGEST_FIRST.join(' | ')} |
| --- | ${STRONGEST_FIRST.map(() => '---').join(' | ')} |
${Object.entries(figures.provenance)
  .map(([field, counts]) => `| ${field} | ${STRONGEST_FIRST.map((word) => counts[word] ?? 0).join(' | ')} |`)
  .join('\n')}

## Lens

\`lens_reward\`, \`lens_success\` and \`lens_counted\` are the rollout as ${markdown(lineage.lens)} counts it: ${markdown(lineage.lens_rule)}. Every other
column is a fact, which no lens changes; \`advantage\` and pairs are made of \`reward\`.

## Columns

${EXPORT_COLUMNS.map(({ name, type, about }) => `- \`${name}\` (${type === 'json' ? 'JSON text' : type}): ${about}`).join('\n')}
- \`messages\` (list of structs): ${MESSAGE_COLUMNS.map(({ name }) => `\`${name}\``).join(', ')}

Rewards are those of the environment, before any post-processing of the trainer. A reward of null is an unscored rollout, not a zero.
\`advantage\` is over the effective rollouts of the whole group, also where the query took only some of them.
`;
}

const STRONGEST_FIRST = PROVENANCES.toReversed();

function facts(lineage: ExportLineage, figures: ExportFigures): Record<string, string | number> {
  const { mean, min, max } = figures.reward;
  const std = rewardStd(figures);
  const versions = Object.keys(figures.normalisers).join(', ');
  const steps = figures.steps.min === null ? 'not known' : `${figures.steps.min} to ${figures.steps.max}`;
  const rewards =
    figures.scored === 0
      ? 'none scored'
      : `mean ${formatReward(mean)}, std ${formatReward(std)}, min ${formatReward(min!)}, max ${formatReward(max!)}, of ${figures.scored} scored`;
  return {
    query: lineage.canonical_query === '' ? '(everything)' : lineage.canonical_query,
    lens: lineage.lens,
    'normaliser version': versions === '' ? '–' : versions,
    rollouts: figures.rollouts,
    'scored / effective': `${figures.scored} / ${figures.effective}`,
    reward: rewards,
    steps,
    'as of': `arrival ${lineage.as_of}`,
    redacted: lineage.redacted ? 'shapes of credentials were replaced' : 'no',
    export: lineage.export_id,
  };
}

function frontMatter(lineage: ExportLineage, figures: ExportFigures): string {
  const features = EXPORT_COLUMNS.map((each) => feature(each, '    ')).join('\n');
  const messages = MESSAGE_COLUMNS.map((each) => feature(each, '      ')).join('\n');
  const palestra = {
    export_id: lineage.export_id,
    query: lineage.canonical_query,
    query_as_asked: lineage.query,
    lens: lineage.lens,
    lens_rule: lineage.lens_rule,
    run: lineage.run,
    org: lineage.org,
    as_of: lineage.as_of,
    redacted: lineage.redacted,
    normaliser_versions: Object.keys(figures.normalisers).map(Number),
    environments: figures.environments,
    rollouts: figures.rollouts,
    scored: figures.scored,
    effective: figures.effective,
    reward: {
      mean: figures.scored === 0 ? null : figures.reward.mean,
      std: rewardStd(figures),
      min: figures.reward.min,
      max: figures.reward.max,
    },
  };
  return `---
license: other
license_name: not-chosen
pretty_name: ${yaml(`Rollouts of ${lineage.run ?? lineage.org}`)}
tags: ["reinforcement-learning", "rollouts", "palestra"]
size_categories: ["${sizeCategory(figures.rollouts)}"]
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*.parquet
dataset_info:
  features:
${features}
  - name: messages
    list:
${messages}
palestra: ${yaml(palestra)}
---
`;
}

/** JSON is YAML except for a few characters that YAML requires to be escaped. Escaping them prevents names from breaking the YAML. */
const yaml = (value: unknown): string =>
  JSON.stringify(value).replaceAll(
    /[<\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

function feature({ name, type }: Column, indent: string): string {
  const line = indent.slice(2);
  return type === 'strings'
    ? `${line}- name: ${name}\n${indent}list: ${FEATURE_TYPES[type]}`
    : `${line}- name: ${name}\n${indent}dtype: ${FEATURE_TYPES[type]}`;
}

function sizeCategory(rows: number): string {
  const steps: [number, string][] = [
    [1_000, 'n<1K'],
    [10_000, '1K<n<10K'],
    [100_000, '10K<n<100K'],
    [1_000_000, '100K<n<1M'],
    [10_000_000, '1M<n<10M'],
  ];
  return steps.find(([limit]) => rows < limit)?.[1] ?? '10M<n<100M';
}

function list(counts: Record<string, number>): string {
  const entries = Object.entries(counts).toSorted((a, b) => b[1] - a[1]);
  return entries.length === 0 ? 'none' : entries.map(([name, n]) => `- ${markdown(name)}: ${n}`).join('\n');
}

/** Escapes names, so that they stay text. */
function markdown(text: string): string {
  return text.replaceAll(/[\r\n]+/g, ' ').replaceAll(/[\\`*_{}[\]<>()#+!|~-]/g, (sign) => `\\${sign}`);
}
