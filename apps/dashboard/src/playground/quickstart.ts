import type { JsonObject, ToolSpec } from '@palestra/protocol';
import { pythonLiteral } from './call-snippets.ts';
import { argumentsOf } from './form/field.ts';
import { sampleOf } from './form/sample.ts';

/** Programs that play one environment of this server, one for each kind of client, ready to be run. */

export interface Snippet {
  id: 'openreward' | 'openenv' | 'openenv-tools' | 'mcp' | 'text' | 'typescript';
  title: string;
  about: string;
  /** Runs as it stands, with the key in it. */
  text: string;
}

export interface Start {
  /** Of this server, as the reader reaches it: `http://host:8080`. */
  origin: string;
  owner: string;
  name: string;
  /** The task that the programs play. */
  split: string;
  index: number;
  key: string;
  /** Of the environment, for the example of a call; the first one is called. */
  tools: readonly ToolSpec[];
}

/** Where each kind of client finds the environment. Clients of OpenEnv take no query, and before 0.9 no header: the key goes into the URL. */
export function urlsOf({ origin, owner, name, split, index, key }: Omit<Start, 'tools'>) {
  const place = `${encodeURIComponent(owner)}/${encodeURIComponent(name)}`;
  const [scheme, host] = origin.split('://') as [string, string];
  const secret = encodeURIComponent(key);
  return {
    userinfo: `${scheme}://key:${secret}@${host}/openenv/${place}`,
    pathToken: `${origin}/k/${secret}/openenv/${place}`,
    mcp: `${origin}/mcp/${place}?${new URLSearchParams({ split, index: String(index) })}`,
    text: `${origin}/v1/text-sessions`,
  };
}

export function snippetsOf(start: Start): Snippet[] {
  const isAction = start.tools.length === 1 && start.tools[0]!.name === 'step';
  const one = start.tools[0];
  const tool = one && { name: one.name, input: sampleOf(argumentsOf(one.input_schema)) as JsonObject };
  const all = { ...start, tool };
  return [openReward(all), openEnv(all, isAction), ...(isAction ? [] : [openEnvTools(all)]), mcp(all), text(all), typescript(all)];
}

type Told = Start & { tool: { name: string; input: JsonObject } | undefined };
const json = JSON.stringify;
const python = (value: JsonObject): string => pythonLiteral(spaced(value));
/** One line with a space after each comma and colon, as people write it. */
const spaced = (value: JsonObject): string =>
  JSON.stringify(value, null, 1)
    .replaceAll(/\n\s*/g, ' ')
    .replaceAll(/([[{]) | ([\]}])/g, '$1$2');

const lines = (...all: (string | false)[]): string => all.filter((line) => line !== false).join('\n');

function openReward({ origin, owner, name, split, index, key, tool }: Told): Snippet {
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

function openEnv(start: Told, isAction: boolean): Snippet {
  const { split, index, tool } = start;
  const { userinfo, pathToken } = urlsOf(start);
  const action = isAction ? tool?.input : tool && { type: 'call_tool', tool_name: tool.name, arguments: tool.input };
  return {
    id: 'openenv',
    title: 'OpenEnv',
    about: 'Any client of OpenEnv (pip install openenv): the key is in the URL, because most of its versions send no header.',
    text: lines(
      'from openenv import GenericEnvClient',
      '',
      `url = ${json(userinfo)}`,
      '# Where user and password are not kept in URLs:',
      `# url = ${json(pathToken)}`,
      'with GenericEnvClient(base_url=url).sync() as env:',
      `    result = env.reset(split=${json(split)}, index=${index})`,
      '    print(result.observation)',
      action !== undefined && `    result = env.step(${python(action)})`,
      action !== undefined && '    print(result.observation, result.reward, result.done)',
    ),
  };
}

function openEnvTools(start: Told): Snippet {
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

function mcp(start: Told): Snippet {
  const server = { type: 'http', url: urlsOf(start).mcp, headers: { Authorization: `Bearer ${start.key}` } };
  return {
    id: 'mcp',
    title: 'MCP',
    about:
      'For any agent that takes MCP servers over streamable HTTP: one MCP session is one episode. Without split and index it is any task.',
    text: JSON.stringify({ mcpServers: { [start.name]: server } }, null, 2),
  };
}

function text(start: Told): Snippet {
  const { owner, name, split, index, tool, key } = start;
  const said = tool === undefined ? 'Hello.' : `<tool_call>${spaced({ name: tool.name, arguments: tool.input })}</tool_call>`;
  return {
    id: 'text',
    title: 'Text',
    about: 'Turns as texts, as SkyRL-Gym’s environments have them: what a model wrote goes in, what it reads next comes out.',
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
      `print(ask(f"/{session['id']}/step", text=${json(said)}))`,
      'ask(f"/{session[\'id\']}", "DELETE")',
    ),
  };
}

function typescript({ origin, owner, name, split, index, key, tool }: Told): Snippet {
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
