/** A body that is read once. Strings are JSON. */
export type RequestBody = string | Blob | AsyncIterable<Uint8Array>;

export interface HttpRequest {
  origin: string;
  path: string;
  method: string;
  headers: Record<string, string>;
  body: RequestBody | null;
  signal: AbortSignal;
}

/** The head of a response. Read its body once, by `text` or `chunks`. */
export interface HttpAnswer {
  status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  /** Rejects if the connection breaks before the end. */
  chunks(): AsyncIterable<Uint8Array>;
}

/**
 * The HTTP of a platform. package.json chooses the file: transport.browser.ts for bundles for browsers, transport.node.ts otherwise. `send`
 * rejects if no response arrives, follows no redirect and sends no cookie.
 */
export interface Transport {
  send(request: HttpRequest): Promise<HttpAnswer>;
  close(): Promise<void>;
}
