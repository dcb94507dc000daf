import { type JsonObject, type JsonValue, PalestraError, stringifyJson } from '@palestra/protocol';

/** Error codes of OpenEnv's socket (docs/reference/openenv.md#errors). */
export type OpenEnvErrorCode =
  | 'INVALID_JSON'
  | 'UNKNOWN_TYPE'
  | 'VALIDATION_ERROR'
  | 'EXECUTION_ERROR'
  | 'CAPACITY_REACHED'
  | 'FACTORY_ERROR'
  | 'SESSION_ERROR';

/** An error frame. `extra`: other keys than `message` and `code`. */
export class OpenEnvError extends Error {
  constructor(
    readonly code: OpenEnvErrorCode,
    message: string,
    readonly extra: JsonObject = {},
    /** A `PalestraError` here is what HTTP clients get. */
    cause?: unknown,
    /** JSON text of the JSON-RPC request's id. */
    readonly rpcId = 'null',
  ) {
    super(message, { cause });
    this.name = 'OpenEnvError';
  }

  /** The socket closes after this error. */
  get ends(): boolean {
    return this.code === 'SESSION_ERROR' || this.refuses;
  }

  /** No session could be opened. */
  get refuses(): boolean {
    return this.code === 'CAPACITY_REACHED' || this.code === 'FACTORY_ERROR';
  }

  /** The same error as the response to a JSON-RPC request. */
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
/** Adds the documentation URLs that pydantic lists. */
export const withUrls = (issues: Issue[]): object[] => issues.map((one) => ({ ...one, url: PYDANTIC + one.type }));

export const invalid = (issues: Issue[]): OpenEnvError =>
  new OpenEnvError('VALIDATION_ERROR', 'Invalid message', { errors: withUrls(issues) });

/** The error frame for a rejection of the engine. */
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

/** `max`: the capacity; null if unknown. */
export function atCapacity(max: number | null): OpenEnvError {
  if (max === null) return new OpenEnvError('CAPACITY_REACHED', 'Server at capacity. Cannot accept new connections.');
  const message = `Server at capacity: ${max}/${max} sessions active. Cannot accept new connections.`;
  return new OpenEnvError('CAPACITY_REACHED', message, { active_sessions: max, max_sessions: max });
}

/** The capacity in the refusal of a full OpenEnv server (`Server at capacity: 2/2 sessions active.`); null if it has none. */
export function capacityIn(refusal: string): number | null {
  const match = /\d+\/(\d+) sessions active/.exec(refusal);
  return match === null ? null : Number(match[1]);
}
