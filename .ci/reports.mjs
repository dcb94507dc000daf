/** What .ci/run reads from the JSON reports of Vitest. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const nameOf = ({ ancestorTitles, title }) => [...ancestorTitles, title].filter(Boolean).join(' > ');
const counted = ({ testResults }, status) =>
  testResults.flatMap(({ assertionResults }) => assertionResults).filter((each) => each.status === status).length;

const commands = {
  /** The files that are worth another run, a line each: none when there are more than `limit`, which is no accident. */
  failed(file, limit) {
    const files = read(file).testResults.filter(({ status }) => status === 'failed');
    return files.length > Number(limit) ? [] : files.map(({ name }) => path.relative(process.cwd(), name));
  },

  /** Puts the second run of some files in the place of their first, whose failures stay with the tests that pass now. */
  merge(file, again) {
    const first = read(file);
    const second = new Map(read(again).testResults.map((result) => [result.name, result]));
    first.testResults = first.testResults.map((before) => {
      const after = second.get(before.name);
      if (after === undefined) return before;
      const failures = new Map(before.assertionResults.map((each) => [nameOf(each), each.failureMessages]));
      const whole = before.assertionResults.length === 0 && before.message ? [before.message] : [];
      for (const each of after.assertionResults) each.failureMessages.unshift(...(failures.get(nameOf(each)) ?? whole));
      return after;
    });
    writeFileSync(file, JSON.stringify(first));
    return [];
  },

  /** "PASSED FAILED". A skipped test is a failed one, and so is a file that did not load or a run that found nothing. */
  count(file) {
    const report = read(file);
    const passed = counted(report, 'passed');
    const empty = report.testResults.filter(
      ({ status, assertionResults }) => status === 'failed' && counted({ testResults: [{ assertionResults }] }, 'failed') === 0,
    );
    const all = report.testResults.reduce((sum, { assertionResults }) => sum + assertionResults.length, 0);
    const failed = all - passed + empty.length;
    return [`${passed} ${passed === 0 ? failed + 1 : failed}`];
  },

  /** Tests that passed only when they were run again. */
  flaky(file) {
    return read(file).testResults.flatMap(({ name, assertionResults }) =>
      assertionResults
        .filter(({ status, failureMessages }) => status === 'passed' && failureMessages.length > 0)
        .map((each) => `flaky: ${path.relative(process.cwd(), name)} > ${nameOf(each)}\n       ${each.failureMessages[0].split('\n')[0]}`),
    );
  },
};

const [command, ...files] = process.argv.slice(2);
for (const line of commands[command](...files)) console.log(line);
