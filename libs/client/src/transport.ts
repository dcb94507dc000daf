/** A body that is read once. Strings are JSON. */
export type RequestBody = string | Blob | AsyncIterable<Uint8Array>;

export interface HttpRequest {
  origin: string;
  path: string;
  method: string;
  headers: Record<string, string>;
  body: RequestBody | null;
  /** Calls the function if the request is to end before its response has. */
  onAbort(abort: () => void): void;
}

/** The head of a response. Read its body once, by one of the methods, which reject if the connection breaks before the end. */
export interface HttpAnswer {
  status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  /** Calls `onBytes` with each piece as it arrives. Resolves at the end. */
  read(onBytes: (bytes: Uint8Array) => void): Promise<void>;
  /** Reads no faster than the caller. */
  chunks(): AsyncGenerator<Uint8Array>;
}

/**
 * The HTTP of a platform. package.json chooses the file: transport.browser.ts for bundles for browsers, transport.node.ts otherwise. `send`
 * rejects if no response arrives, follows no redirect and sends no cookie.
 */
export interface Transport {
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** Lets any number of requests at once listen to a signal. Node.js would warn of a leak at the eleventh. */
  share(signal: AbortSignal): void;
  close(): Promise<void>;
}
