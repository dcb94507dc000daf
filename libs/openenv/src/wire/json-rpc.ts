import { isObject, type JsonObject, type JsonValue, parseJson, stringifyJson, toPlainNumber } from '@palestra/protocol';
import { pythonRepr, pythonType, jsonErrorOf } from '@palestra/kit/python';

/** OpenEnv's JSON-RPC, which is similar to MCP (docs/reference/openenv.md#json-rpc). */
export interface RpcRequest {
  method: string;
  params: JsonObject;
  /** JSON text. */
  id: string;
}

/** A response with `error`. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data: JsonValue = null,
    /** JSON text of the request's id. */
    readonly id = 'null',
  ) {
    super(message);
    this.name = 'RpcError';
  }

  text(id = this.id): string {
    return `{"jsonrpc":"2.0","id":${id},"error":{"code":${this.code},"message":${JSON.stringify(this.message)},"data":${stringifyJson(this.data)}}}`;
  }
}

export const rpcResult = (id: string, result: string): string => `{"jsonrpc":"2.0","id":${id},"result":${result}}`;

export const unknownSession = (id: JsonValue): RpcError =>
  new RpcError(-32602, `Unknown session_id: ${typeof id === 'string' ? id : pythonRepr(id)}`);

/** Parses a frame or body. `verbose`: reports where the JSON is invalid, as OpenEnv's socket does and its HTTP does not. */
export function parseRpc(text: string, verbose: boolean): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch {
    throw new RpcError(-32700, verbose ? `Parse error: ${jsonErrorOf(text)}` : 'Parse error');
  }
  if (!isObject(value)) throw new RpcError(-32700, 'Parse error');
  return value;
}

interface Fault {
  field: string;
  type: string;
  msg: string;
  input: JsonValue;
}

export function readRpc(value: JsonValue): RpcRequest {
  if (!isObject(value)) throw new RpcError(-32600, 'Invalid request: the message is not an object');
  const { jsonrpc, method, params, id } = value;
  const faults: Fault[] = [];
  const fault = (field: string, type: string, msg: string, input: JsonValue) => faults.push({ field, type, msg, input });
  if (jsonrpc === undefined) fault('jsonrpc', 'missing', 'Field required', value);
  else if (jsonrpc !== '2.0') fault('jsonrpc', 'literal_error', "Input should be '2.0'", jsonrpc);
  if (method === undefined) fault('method', 'missing', 'Field required', value);
  else if (typeof method !== 'string') fault('method', 'string_type', 'Input should be a valid string', method);
  if (params !== undefined && !isObject(params)) fault('params', 'dict_type', 'Input should be a valid dictionary', params);
  if (id !== undefined && id !== null && typeof id !== 'string' && toPlainNumber(id) === null)
    fault('id', 'string_type', 'Input should be a valid string', id);
  for (const key in value) {
    if (key !== 'jsonrpc' && key !== 'method' && key !== 'params' && key !== 'id')
      fault(key, 'extra_forbidden', 'Extra inputs are not permitted', value[key]);
  }
  if (faults.length > 0) throw new RpcError(-32600, `Invalid request: ${faultsText(faults)}`);
  return { method: method as string, params: (params as JsonObject | undefined) ?? {}, id: stringifyJson(id ?? null) };
}

/** Formats errors as pydantic does. */
function faultsText(faults: Fault[]): string {
  const lines = faults.map(
    ({ field, type, msg, input }) =>
      `${field}\n  ${msg} [type=${type}, input_value=${pythonRepr(input)}, input_type=${pythonType(input)}]\n    For further information visit https://errors.pydantic.dev/2.14/v/${type}`,
  );
  return `${faults.length} validation error${faults.length === 1 ? '' : 's'} for JsonRpcRequest\n${lines.join('\n')}`;
}
