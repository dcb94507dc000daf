import type { ImageBlock, JsonObject, JsonValue } from '@palestra/protocol';
import type { ReactNode } from 'react';
import { formatCount } from '../format/number.ts';
import { BlockImage, LongText } from '../session/Blocks.tsx';
import { JsonTree } from '../text/JsonTree.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { notedImage } from './action-environment.ts';
import { imageIn } from './observed-image.ts';

/** Members that are rendered. An observation can have any number. */
const MAX_MEMBERS = 200;
const MAX_NUMBERS = 400;
const MAX_COLUMNS = 40;

const isNumbers = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'number');
const isGrid = (value: unknown): value is number[][] =>
  Array.isArray(value) && value.length > 1 && value.every((row) => isNumbers(row) && row.length === (value[0] as unknown[]).length);

/** The members of an observation: images, grids in rows, numbers in a line, everything else as a tree. */
export function Observation({ value, images }: { value: JsonObject; images: readonly ImageBlock[] }) {
  const entries = Object.entries(value);
  if (entries.length === 0) return <p className="text-ink-3">Empty observation</p>;
  return (
    <dl className="grid min-w-0 grid-cols-[minmax(0,max-content)_minmax(0,1fr)] gap-x-3 gap-y-1" aria-label="Observation">
      {entries.slice(0, MAX_MEMBERS).map(([name, member]) => (
        <div key={name} className="contents">
          <dt className="mono max-w-[180px] truncate text-ink-3" title={`${name}: ${typeOf(member)}`}>
            <PlainText text={name} />
          </dt>
          <dd className="min-w-0">
            <Member name={name} value={member} beside={value} images={images} />
          </dd>
        </div>
      ))}
      {entries.length > MAX_MEMBERS && <p className="label col-span-2">{formatCount(entries.length - MAX_MEMBERS)} more members</p>}
    </dl>
  );
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? `list of ${formatCount(value.length)}` : typeof value;
}

interface MemberProps {
  name: string;
  value: JsonValue;
  beside: JsonObject;
  images: readonly ImageBlock[];
}

function Member({ name, value, beside, images }: MemberProps): ReactNode {
  const image = notedImage(value, images) ?? imageIn(name, value, beside);
  if (image !== null) return <BlockImage {...image} />;
  if (typeof value === 'string')
    return value === '' ? (
      <span className="text-ink-3">Empty text</span>
    ) : (
      <div className="mono whitespace-pre-wrap [overflow-wrap:anywhere]">
        <LongText text={value} />
      </div>
    );
  if (isGrid(value) && value[0]!.length <= MAX_COLUMNS) return <Grid rows={value} />;
  if (isNumbers(value)) return <Numbers values={value} />;
  if (value !== null && typeof value === 'object' && Object.keys(value).length > 0) return <JsonTree value={value} openLevels={1} />;
  return <span className="mono text-[var(--role-tool)]">{JSON.stringify(value)}</span>;
}

function Numbers({ values }: { values: number[] }) {
  const rest = values.length - MAX_NUMBERS;
  return (
    <div className="mono max-h-[108px] overflow-auto [overflow-wrap:anywhere]" tabIndex={values.length > 60 ? 0 : undefined}>
      <span className="text-[var(--role-tool)]">{values.slice(0, MAX_NUMBERS).join(' ')}</span>
      {rest > 0 && <span className="text-ink-3"> and {formatCount(rest)} more</span>}
      {values.length > 8 && <span className="label"> · {formatCount(values.length)} numbers</span>}
    </div>
  );
}

/** A matrix, for example a game board, with aligned columns. */
function Grid({ rows }: { rows: number[][] }) {
  const shown = rows.slice(0, MAX_COLUMNS);
  const width = Math.max(...shown.flatMap((row) => row.map((number) => String(number).length)));
  return (
    <div
      className="max-h-[300px] w-fit max-w-full overflow-auto"
      tabIndex={0}
      role="group"
      aria-label={`${rows.length} rows of ${rows[0]!.length}`}
    >
      <pre className="mono text-[var(--role-tool)]">
        {shown.map((row) => row.map((number) => String(number).padStart(width)).join(' ')).join('\n')}
      </pre>
      <p className="label">
        {rows.length} × {rows[0]!.length}
      </p>
    </div>
  );
}
