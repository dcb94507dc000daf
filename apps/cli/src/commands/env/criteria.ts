/** One check of a report, with the keys of `openenv validate` (docs/reference/openenv.md#validation-command). */
export interface Criterion {
  id: string;
  description: string;
  passed: boolean;
  required: boolean;
  details?: string;
  expected?: unknown;
  actual?: unknown;
}

export interface Report {
  target: string;
  validation_type: 'running_environment' | 'local_environment';
  standard_version: string;
  standard_profile: string;
  mode: string;
  passed: boolean;
  summary: {
    passed_count: number;
    total_count: number;
    failed_criteria: string[];
    required_passed_count: number;
    required_total_count: number;
  };
  criteria: Criterion[];
}

export function reportOf(about: Omit<Report, 'passed' | 'summary' | 'criteria'>, criteria: Criterion[]): Report {
  const required = criteria.filter((one) => one.required);
  const passed = (some: Criterion[]) => some.filter((one) => one.passed).length;
  return {
    ...about,
    passed: passed(required) === required.length,
    summary: {
      passed_count: passed(criteria),
      total_count: criteria.length,
      failed_criteria: criteria.filter((one) => !one.passed).map(({ id }) => id),
      required_passed_count: passed(required),
      required_total_count: required.length,
    },
    criteria: criteria.map(inOrder),
  };
}

/** The keys in the order of OpenEnv's command. */
const inOrder = ({ id, description, passed, required, details, expected, actual }: Criterion): Criterion => ({
  id,
  description,
  passed,
  required,
  ...(details !== undefined && { details }),
  ...(expected !== undefined && { expected }),
  ...(actual !== undefined && { actual }),
});

/** The report as text. */
export function reportLines({ target, standard_profile, standard_version, mode, passed, summary, criteria }: Report): string[] {
  const lines = [`${target}: ${standard_profile}, version ${standard_version}, ${mode}`];
  for (const { id, passed: good, required, description, details, actual } of criteria) {
    lines.push(`  ${good ? 'ok  ' : required ? 'FAIL' : 'warn'}  ${id}${good ? '' : `: ${description}`}`);
    if (good) continue;
    if (details !== undefined) lines.push(`        ${details}`);
    if (actual !== undefined) lines.push(`        found ${JSON.stringify(actual)}`);
  }
  lines.push(`${passed ? 'passed' : 'FAILED'}: ${summary.passed_count} of ${summary.total_count}`);
  return lines;
}
