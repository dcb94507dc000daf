import type { ToolSpec } from '@palestra/protocol';
import { CopyButton } from '../frame/CopyButton.tsx';
import { argumentsOf, type Field, limitsOf, typeName } from '../playground/form/field.ts';
import { PlainText } from '../text/PlainText.tsx';
import { anthropicTool, openAiTool, toolText } from './tool-formats.ts';

interface Line {
  name: string;
  required: boolean;
  field: Field;
  depth: number;
  /** The line is an alternative or an item, not a named member. */
  choice: boolean;
}
const MAX_LINES = 400;

/** A schema as lines: members below their object, items below their list, alternatives below their choice. */
function linesOf(field: Field, depth: number, lines: Line[]): Line[] {
  if (lines.length > MAX_LINES) return lines;
  const { shape } = field;
  if (shape.kind === 'object') {
    for (const { name, required, field: member } of shape.members) {
      lines.push({ name, required, field: member, depth, choice: false });
      linesOf(member, depth + 1, lines);
    }
    if (shape.others) {
      lines.push({ name: 'any other name', required: true, field: shape.others, depth, choice: true });
      linesOf(shape.others, depth + 1, lines);
    }
  } else if (shape.kind === 'list') {
    if (isDeep(shape.item)) {
      lines.push({ name: 'each item', required: true, field: shape.item, depth, choice: true });
      linesOf(shape.item, depth + 1, lines);
    }
  } else if (shape.kind === 'oneOf') {
    for (const { label, field: option } of shape.options) {
      if (!isDeep(option)) continue;
      lines.push({ name: `or ${label}`, required: true, field: option, depth, choice: true });
      linesOf(option, depth + 1, lines);
    }
  }
  return lines;
}

const isDeep = ({ shape, description }: Field): boolean =>
  shape.kind === 'object' || shape.kind === 'oneOf' || shape.kind === 'list' || description !== null;

/** One tool: name, description, and all arguments with type and description. */
export function ToolCard({ tool, terminal }: { tool: ToolSpec; terminal: boolean }) {
  const field = argumentsOf(tool.input_schema);
  const lines = linesOf(field, 0, []);
  return (
    <article id={`tool-${tool.name}`} aria-label={`Tool ${tool.name}`} className="border-b border-line py-[10px]">
      <div className="flex items-center gap-2">
        <h3 className="mono font-medium text-[var(--role-tool)]">{tool.name}</h3>
        {terminal && <span className="chip text-good">● Ends the episode</span>}
        <span className="flex-1" />
        <span className="label">Copy for</span>
        <CopyButton text={toolText(openAiTool(tool))} label="OpenAI" />
        <CopyButton text={toolText(anthropicTool(tool))} label="Anthropic" />
      </div>
      {tool.description && (
        <p className="max-w-[84ch] whitespace-pre-line text-ink-2">
          <PlainText text={tool.description} />
        </p>
      )}
      {lines.length === 0 ? (
        <p className="label mt-1">{field.shape.kind === 'object' ? 'No arguments' : `One argument: ${typeName(field)}`}</p>
      ) : (
        <dl className="mt-1 grid grid-cols-[fit-content(320px)_fit-content(320px)_minmax(0,1fr)] gap-x-4 gap-y-[2px] text-[12px] max-[560px]:grid-cols-[fit-content(50%)_minmax(0,1fr)]">
          {lines.map((line, index) => (
            <Argument key={index} line={line} />
          ))}
        </dl>
      )}
    </article>
  );
}

function Argument({ line: { name, required, field, depth, choice } }: { line: Line }) {
  const type = typeName(field);
  const notes = [limitsOf(field), field.fallback === null ? '' : `default ${field.fallback.slice(0, 120)}`].filter(Boolean).join(', ');
  return (
    <div className="contents">
      <dt className={choice ? 'text-ink-3' : 'mono'} style={{ paddingLeft: depth * 16 }}>
        <PlainText text={name} />
        {!required && (
          <span className="text-ink-3" title="Optional">
            ?
          </span>
        )}
      </dt>
      <dd className="mono max-w-[44ch] [overflow-wrap:anywhere] text-ink-3">{type}</dd>
      <dd className="min-w-0 text-ink-2 [overflow-wrap:anywhere] max-[560px]:col-start-2">
        {field.description && <PlainText text={field.description} />} {notes && <span className="text-ink-3">{notes}</span>}
      </dd>
    </div>
  );
}
