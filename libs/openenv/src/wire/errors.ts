import { type JsonObject, type JsonValue, PalestraError, stringifyJson } from '@palestra/protocol';

/** The error codes of OpenEnv's socket (openenv-wire.md section 4). */
export type OpenEnvErrorCode =
  | 'INVALID_JSON'
  | 'UNKNOWN_TYPE'
  | 'VALIDATION_ERROR'
  | 'EXECUTION_ERROR'
  | 'CAPACITY_REACHED'
  | 'FACTORY_ERROR'
  | 'SESSION_ERROR';

/** An error frame. `extra`: the keys beside `message` and `code`. */
export class OpenEnvError extends Error {
  constructor(
    readonly code: OpenEnvErrorCode,
    message: string,
    readonly extra: JsonObject = {},
    /** What an HTTP client is told instead, if it is a `PalestraError`. */
    cause?: unknown,
    /** JSON text of the id of the JSON-RPC request that it answers. */
    readonly rpcId = 'null',
  ) {
    super(message, { cause });
    this.name = 'OpenEnvError';
  }

  /** The socket closes after it. */
  get ends(): boolean {
    return this.code === 'SESSION_ERROR' || this.refuses;
  }

  /** No session could be opened. */
  get refuses(): boolean {
    return this.code === 'CAPACITY_REACHED' || this.code === 'FACTORY_ERROR';
  }

  /** The same as the answer to a JSON-RPC request. */
  forRpc(rpcId: string): OpenEnvError {
    return new OpenEnvError(this.code, this.message, this.extra, this.cause, rpcId);
  }

  frame(): string {
    return stringifyJson({ type: 'error', data: { message: this.message, code: this.code, ...this.extra } });
  }
}

/** One item of pydantic's error list. */
export interface Issue {
  type: string;
  loc: (string | number)[];
  msg: string;
  input: JsonValue;
}

const MESSAGES: Record<string, string> = {
  missing: 'Field required',
  extra_forbidden: 'Extra inputs are not permitted',
  dict_type: 'Input should be a valid dictionary',
  string_type: 'Input should be a valid string',
  bool_type: 'Input should be a valid boolean',
  int_type: 'Input should be a valid integer',
  int_parsing: 'Input should be a valid integer, unable to parse string as an integer',
  int_from_float: 'Input should be a valid integer, got a number with a fractional part',
  float_type: 'Input should be a valid number',
  float_parsing: 'Input should be a valid number, unable to parse string as a number',
  list_type: 'Input should be a valid list',
};

export const issue = (type: string, loc: (string | number)[], input: JsonValue, msg = MESSAGES[type] ?? type): Issue => ({
  type,
  loc,
  msg,
  input,
});

const PYDANTIC = 'https://errors.pydantic.dev/2.14/v/';
/** As pydantic lists them, with the address of its documentation. */
export const withUrls = (issues: Issue[]): object[] => issues.map((one) => ({ ...one, url: PYDANTIC + one.type }));

export const invalid = (issues: Issue[]): OpenEnvError =>
  new OpenEnvError('VALIDATION_ERROR', 'Invalid message', { errors: withUrls(issues) });

/** What a rejection of the engine means to an OpenEnv client: never an observation. */
export function toOpenEnvError(error: unknown, factory: string): OpenEnvError {
  if (error instanceof OpenEnvError) return error;
  if (!(error instanceof PalestraError)) return new OpenEnvError('EXECUTION_ERROR', 'Internal Server Error', {}, error);
  switch (error.code) {
    case 'session_not_found':
    case 'session_deleted':
    case 'session_expired':
    case 'session_lost':
    case 'session_diverged':
    case 'session_moved':
    case 'call_timeout':
    case 'shutting_down':
      return new OpenEnvError('SESSION_ERROR', error.message, {}, error);
    case 'environment_failed':
      return new OpenEnvError(
        'FACTORY_ERROR',
        `Environment factory '${factory}' failed to create instance.`,
        { factory_name: factory, detail: error.message },
        error,
      );
    default:
      return new OpenEnvError('EXECUTION_ERROR', error.message, {}, error);
  }
}

/** `max`: how many sessions there may be; null where nobody said. */
export function atCapacity(max: number | null): OpenEnvError {
  if (max === null) return new OpenEnvError('CAPACITY_REACHED', 'Server at capacity. Cannot accept new connections.');
  const message = `Server at capacity: ${max}/${max} sessions active. Cannot accept new connections.`;
  return new OpenEnvError('CAPACITY_REACHED', message, { active_sessions: max, max_sessions: max });
}

/** How many sessions a full OpenEnv server says it holds (`Server at capacity: 2/2 sessions active.`); null where it does not. */
export function capacityIn(refusal: string): number | null {
  const said = /\d+\/(\d+) sessions active/.exec(refusal);
  return said === null ? null : Number(said[1]);
}
