import http from 'node:http';
import https from 'node:https';

/** What the server answered to a request that it refused. */
export class ApiRefusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export interface ApiTarget {
  /** `https://host:port`, or a path of a socket. */
  at: { url: string; ca: string; token: string } | { socketPath: string };
  /** Before each path, as `/v1.41`. */
  prefix?: string;
}

const DEADLINE_MS = 30_000;

/** JSON requests to an API server, or to Podman. */
export class Api {
  readonly #target: ApiTarget;
  readonly #agent: http.Agent | https.Agent;

  constructor(target: ApiTarget) {
    this.#target = target;
    this.#agent = 'url' in target.at ? new https.Agent({ keepAlive: true }) : new http.Agent();
  }

  get = <T = any>(path: string): Promise<T> => this.request<T>('GET', path);
  post = <T = any>(path: string, body?: unknown): Promise<T> => this.request<T>('POST', path, body);
  put = <T = any>(path: string, body: unknown): Promise<T> => this.request<T>('PUT', path, body);
  merge = <T = any>(path: string, body: unknown): Promise<T> => this.request<T>('PATCH', path, body, 'application/merge-patch+json');
  apply = <T = any>(path: string, body: unknown): Promise<T> =>
    this.request<T>('PATCH', `${path}?fieldManager=palestra-test&force=true`, body, 'application/apply-patch+yaml');
  delete = <T = any>(path: string, body?: unknown): Promise<T> => this.request<T>('DELETE', path, body);

  /** Null for 404. */
  async find<T = any>(path: string): Promise<T | null> {
    try {
      return await this.get<T>(path);
    } catch (error) {
      if (error instanceof ApiRefusal && error.status === 404) return null;
      throw error;
    }
  }

  /** Resolves with the parsed answer. A connection that was closed between two requests is opened again. */
  async request<T = any>(method: string, path: string, body?: unknown, type?: string, headers?: Record<string, string>): Promise<T> {
    try {
      return await this.#send<T>(method, path, body, type, headers);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
      return this.#send<T>(method, path, body, type, headers);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #send<T>(method: string, path: string, body: unknown, type = 'application/json', headers: Record<string, string> = {}): Promise<T> {
    const { at, prefix = '' } = this.#target;
    const sent = body === undefined ? null : JSON.stringify(body);
    const options: https.RequestOptions = {
      method,
      agent: this.#agent,
      signal: AbortSignal.timeout(DEADLINE_MS),
      headers: {
        ...headers,
        ...(sent !== null && { 'content-type': type, 'content-length': Buffer.byteLength(sent) }),
        ...('url' in at && { authorization: `Bearer ${at.token}` }),
      },
    };
    return new Promise((resolve, reject) => {
      const answered = (answer: http.IncomingMessage) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const parsed = parse(text);
          if (answer.statusCode! < 400) resolve(parsed as T);
          else reject(new ApiRefusal(answer.statusCode!, (parsed as { message?: string } | null)?.message ?? text));
        });
      };
      const request =
        'url' in at
          ? https.request(`${at.url}${prefix}${path}`, { ...options, ca: at.ca }, answered)
          : http.request({ ...options, socketPath: at.socketPath, path: `${prefix}${path}` }, answered);
      request.on('error', reject).end(sent);
    });
  }
}

function parse(text: string): unknown {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return text;
  }
}

export const isStatus = (error: unknown, ...statuses: number[]): boolean => error instanceof ApiRefusal && statuses.includes(error.status);
