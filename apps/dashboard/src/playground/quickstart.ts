import type { JsonObject, ToolSpec } from '@palestra/protocol';
import { pythonLiteral } from './call-snippets.ts';
import { argumentsOf } from './form/field.ts';
import { sampleOf } from './form/sample.ts';

/** Programs that play an environment of this server, one for each kind of client. */

export interface Snippet {
  id: 'openreward' | 'openenv' | 'openenv-tools' | 'mcp' | 'text' | 'typescript';
  title: string;
  about: string;
  /** The complete program, including the key. */
  text: string;
}

export interface Start {
  /** Origin of this server as the reader's browser has it: `http://host:8080`. */
  origin: string;
  owner: string;
  name: string;
  /** The task that the programs play. */
  split: string;
  index: number;
  key: string;
  /** Tools of the environment. The program calls the first one. */
  tools: readonly ToolSpec[];
}

/**
 * The URL of the environment for each kind of client. OpenEnv clients accept no query, and before 0.9 no header, so the URL has the key
 * (docs/openenv.md).
 */
export function urlsOf({ origin, owner, name, split, index, key }: Omit<Start, 'tools'>) {
  const path = `${encodeURIComponent(owner)}/${encodeURIComponent(name)}`;
  const [scheme, host] = origin.split('://') as [string, string];
  const secret = encodeURIComponent(key);
  return {
    userinfo: `${scheme}://key:${secret}@${host}/openenv/${path}`,
    pathToken: `${origin}/k/${secret}/openenv/${path}`,
    mcp: `${origin}/mcp/${path}?${new URLSearchParams({ split, index: String(index) })}`,
    text: `${origin}/v1/text-sessions`,
  };
}

export function snippetsOf(start: Start): Snippet[] {
  const isAction = start.tools.length === 1 && start.tools[0]!.name === 'step';
  const first = start.tools[0];
  const tool = first && { name: first.name, input: sampleOf(argumentsOf(first.input_schema)) as JsonObject };
  const example = { ...start, tool };
  return [
    openReward(example),
    openEnv(example, isAction),
    ...(isAction ? [] : [openEnvTools(example)]),
    mcp(example),
    text(example),
    typescript(example),
  ];
}

/** With an example call. */
type Example = Start & { tool: { name: string; input: JsonObject } | undefined };
const json = JSON.stringify;
const python = (value: JsonObject): string => pythonLiteral(spaced(value));
/** One line with a space after each comma and colon. */
const spaced = (value: JsonObject): string =>
  JSON.stringify(value, null, 1)
    .replaceAll(/\n\s*/g, ' ')
    .replaceAll(/([[{]) | ([\]}])/g, '$1$2');

const lines = (...all: (string | false)[]): string => all.filter((line) => line !== false).join('\n');

function openReward({ origin, owner, name, split, index, key, tool }: Example): Snippet {
  return {
    id: 'openreward',
    title: 'openreward',
    about: 'The Python package of the Open Reward Standard (pip install openreward), as trainers use it.',
    text: lines(
      'import os',
      '',
      `url = ${json(origin)}`,
      'os.environ.update(OPENREWARD_URL=url, OPENREWARD_API_URL=url, OPENREWARD_SESSION_URL=url)',
      `os.environ["OPENREWARD_API_KEY"] = ${json(key)}`,
      '',
      'from openreward import OpenReward',
      '',
      `environment = OpenReward().environments.get(${json(`${owner}/${name}`)})`,
      `with environment.session(split=${json(split)}, index=${index}) as session:`,
      '    print(session.get_prompt())',
      '    print([tool.name for tool in session.list_tools()])',
      tool !== undefined && `    output = session.call_tool(${json(tool.name)}, ${python(tool.input)})`,
      tool !== undefined && '    print(output.blocks, output.reward, output.finished)',
    ),
  };
}

function openEnv(start: Example, isAction: boolean): Snippet {
  const { split, index, tool } = start;
  const { userinfo, pathToken } = urlsOf(start);
  const action = isAction ? tool?.input : tool && { type: 'call_tool', tool_name: tool.name, arguments: tool.input };
  return {
    id: 'openenv',
    title: 'OpenEnv',
    about: 'Any OpenEnv client (pip install openenv). The URL contains the key, because most versions send no header.',
    text: lines(
      'from openenv import GenericEnvClient',
      '',
      `url = ${json(userinfo)}`,
      '# If the client removes user and password from URLs:',
      `# url = ${json(pathToken)}`,
      'with GenericEnvClient(base_url=url).sync() as env:',
      `    result = env.reset(split=${json(split)}, index=${index})`,
      '    print(result.observation)',
      action !== undefined && `    result = env.step(${python(action)})`,
      action !== undefined && '    print(result.observation, result.reward, result.done)',
    ),
  };
}

function openEnvTools(start: Example): Snippet {
  const { split, index, tool } = start;
  return {
    id: 'openenv-tools',
    title: 'OpenEnv tools',
    about: 'OpenEnv’s client for environments that offer tools (pip install openenv).',
    text: lines(
      'from openenv.core.mcp_client import MCPToolClient',
      '',
      `with MCPToolClient(base_url=${json(urlsOf(start).userinfo)}).sync() as env:`,
      `    env.reset(split=${json(split)}, index=${index})`,
      '    print([tool.name for tool in env.list_tools()])',
      tool !== undefined && `    print(env.call_tool(${json(tool.name)}, **${python(tool.input)}))`,
    ),
  };
}

function mcp(start: Example): Snippet {
  const server = { type: 'http', url: urlsOf(start).mcp, headers: { Authorization: `Bearer ${start.key}` } };
  return {
    id: 'mcp',
    title: 'MCP',
    about:
      'For agents that use MCP servers over streamable HTTP. One MCP session is one episode. Without split and index, the task is random.',
    text: JSON.stringify({ mcpServers: { [start.name]: server } }, null, 2),
  };
}

function text(start: Example): Snippet {
  const { owner, name, split, index, tool, key } = start;
  const message = tool === undefined ? 'Hello.' : `<tool_call>${spaced({ name: tool.name, arguments: tool.input })}</tool_call>`;
  return {
    id: 'text',
    title: 'Text',
    about: 'Text in and text out, as in SkyRL-Gym: send the text of the model and receive its next observation.',
    text: lines(
      'import json, urllib.request',
      '',
      'def ask(path="", method="POST", **body):',
      `    headers = {"Authorization": ${json(`Bearer ${key}`)}, "Content-Type": "application/json"}`,
      `    url = ${json(urlsOf(start).text)} + path`,
      '    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)',
      '    return json.load(urllib.request.urlopen(request))',
      '',
      `session = ask(environment=${json(`${owner}/${name}`)}, split=${json(split)}, index=${index})`,
      'print(session["prompt"])',
      `print(ask(f"/{session['id']}/step", text=${json(message)}))`,
      'ask(f"/{session[\'id\']}", "DELETE")',
    ),
  };
}

function typescript({ origin, owner, name, split, index, key, tool }: Example): Snippet {
  const task = `{ environment: ${json(`${owner}/${name}`)}, split: ${json(split)}, index: ${index} }`;
  return {
    id: 'typescript',
    title: 'TypeScript',
    about: 'The typed client of this repository (@palestra/client).',
    text: lines(
      "import { PalestraClient } from '@palestra/client';",
      '',
      `const client = new PalestraClient({ url: ${json(origin)}, apiKey: ${json(key)} });`,
      `const session = await client.session(${task});`,
      'console.log(await session.prompt(), await session.taskTools());',
      tool !== undefined && `console.log(await session.call(${json(tool.name)}, ${spaced(tool.input)}));`,
      'await session.close();',
      'await client.close();',
    ),
  };
}
