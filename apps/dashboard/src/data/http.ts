/** A refusal of the API, or a network failure (`status` 0), in words a reader can act on. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
  }
}

async function toError(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => null)) as { code?: unknown; message?: unknown; detail?: unknown } | null;
  const text = [body?.detail, body?.message].find((part) => typeof part === 'string');
  return new ApiError(
    response.status,
    typeof body?.code === 'string' ? body.code : `http_${response.status}`,
    typeof text === 'string' ? text : `The server answered ${response.status} ${response.statusText}`,
  );
}

/** One request to our own origin with the session cookie. Throws ApiError; resolves to the parsed body (undefined for 204). */
export async function request<T>(path: string, options: { method?: string; body?: unknown; signal?: AbortSignal } = {}): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, {
      method: options.method ?? 'GET',
      credentials: 'same-origin',
      signal: options.signal ?? null,
      headers: options.body === undefined ? { accept: 'application/json' } : { 'content-type': 'application/json' },
      body: options.body === undefined ? null : JSON.stringify(options.body),
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, 'network', 'The server does not answer. Nothing was lost; this page tries again when it is back.');
  }
  if (!response.ok) throw await toError(response);
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
