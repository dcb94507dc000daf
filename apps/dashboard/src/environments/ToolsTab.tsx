import { useSearch } from '@tanstack/react-router';
import type { EnvironmentDiscoveryView } from '@palestra/protocol';
import { plural } from '../format/number.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { anthropicTool, openAiTool, toolText } from './tool-formats.ts';
import { variantOf } from './split.ts';
import { ToolCard } from './ToolCard.tsx';
import { VariantTabs } from './VariantTabs.tsx';

/** Every tool with the arguments of its JSON schema. */
export function ToolsTab({ discovery }: { discovery: EnvironmentDiscoveryView }) {
  const search = useSearch({ from: '/environments/$owner/$name' });
  const variant = variantOf(discovery, search.variant);
  if (!variant) return <p className="p-4 text-ink-2">The server of this environment lists no variants.</p>;
  const { tools, terminal_tool: terminal } = variant.tools;
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-[5px]">
        <VariantTabs discovery={discovery} variant={variant.name} />
        <span className="label">{plural(tools.length, 'tool')}</span>
        <span className="flex-1" />
        {tools.length > 0 && (
          <>
            <CopyButton text={toolText(tools.map(openAiTool))} label="Copy all for OpenAI" />
            <CopyButton text={toolText(tools.map(anthropicTool))} label="Copy all for Anthropic" />
          </>
        )}
      </div>
      <div className="px-4">
        {tools.map((tool) => (
          <ToolCard key={tool.name} tool={tool} terminal={terminal?.name === tool.name} />
        ))}
        {terminal && !tools.some(({ name }) => name === terminal.name) && (
          <ToolCard
            tool={{
              name: terminal.name,
              description: terminal.description,
              input_schema:
                terminal.arg === null
                  ? null
                  : { type: 'object', properties: { [terminal.arg]: { type: 'string' } }, required: [terminal.arg] },
            }}
            terminal
          />
        )}
        {tools.length === 0 && <p className="py-3 text-ink-3">No tool is available for all tasks. A task can add tools.</p>}
      </div>
    </>
  );
}
