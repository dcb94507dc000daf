import type { JsonObject, ToolSpec, ToolsAnswer } from '@palestra/protocol';
import { useId, useMemo } from 'react';
import { CallForm, type CallFormProps } from './CallForm.tsx';
import { actionToolOf, legalActions } from './action-environment.ts';

/** The tools to choose from. The terminal tool is added at the end if it is not among them. */
function listTools({ tools, terminal_tool: terminal }: ToolsAnswer): ToolSpec[] {
  if (!terminal || tools.some(({ name }) => name === terminal.name)) return tools;
  const schema =
    terminal.arg === null ? null : { type: 'object', properties: { [terminal.arg]: { type: 'string' } }, required: [terminal.arg] };
  return [...tools, { name: terminal.name, description: terminal.description, input_schema: schema }];
}

export interface ChosenTool {
  tool: string;
  /** JSON text that fills the form at first. */
  input: string | null;
  /** Increases with every choice, so that the form starts again. */
  count: number;
}
interface PanelProps extends Pick<CallFormProps, 'closedReason' | 'busy' | 'last' | 'onCall'> {
  tools: ToolsAnswer;
  /** The current observation of an action environment. */
  observation: JsonObject | null;
  chosen: ChosenTool | null;
  choose: (tool: string) => void;
}

/** The tools and the form of the chosen one. An action environment has only the form of its action. */
export function ToolPanel({ tools, observation, chosen, choose, ...rest }: PanelProps) {
  const all = useMemo(() => listTools(tools), [tools]);
  const action = actionToolOf(tools);
  const legal = useMemo(() => legalActions(observation), [observation]);
  const tool = all.find(({ name }) => name === chosen?.tool) ?? all[0];
  if (!tool) return <p className="p-3 text-ink-3">This task has no tools.</p>;
  return (
    <section aria-label={action ? 'Action' : 'Tools'} className="flex min-h-0 flex-col">
      {action === null && <Picker tools={tools} all={all} chosen={tool} choose={choose} />}
      <CallForm
        key={`${tool.name} ${chosen?.count ?? 0}`}
        tool={tool}
        preset={chosen?.tool === tool.name ? chosen.input : null}
        isAction={action !== null}
        legal={action === null ? [] : legal}
        {...rest}
      />
    </section>
  );
}

function Picker({ tools, all, chosen, choose }: { tools: ToolsAnswer; all: ToolSpec[]; chosen: ToolSpec; choose: (name: string) => void }) {
  const group = useId();
  return (
    <fieldset className="min-w-0 border-b border-line py-1" aria-label="Tool">
      {all.map((tool) => (
        <label
          key={tool.name}
          className={`flex cursor-pointer items-center gap-2 px-3 py-[3px] hover:bg-paper-2 ${tool === chosen ? 'bg-paper-2' : ''}`}
        >
          <input type="radio" name={group} value={tool.name} checked={tool === chosen} onChange={() => choose(tool.name)} />
          <span className="mono flex-none font-medium text-[var(--role-tool)]">{tool.name}</span>
          <span className="min-w-0 flex-1 truncate text-[12px] text-ink-3" title={tool.description}>
            {tool.description.split('\n', 1)[0]}
          </span>
          {tools.terminal_tool?.name === tool.name && <span className="chip">Ends the episode</span>}
        </label>
      ))}
    </fieldset>
  );
}
