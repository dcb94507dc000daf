/** Injection tokens of the PlatformModule for providers that are not classes. */
export const LOGGER = Symbol('Logger');
/** `SecretKeys`: key material of this service, the same on all replicas. */
export const SERVER_SECRET = Symbol('ServerSecret');
/** `WorkerProcess`: runs the jobs of this process; null when it has none. */
export const WORKER = Symbol('Worker');
export const CLOCK = Symbol('Clock');
export const BLOB_STORE = Symbol('BlobStore');
/** `UrlSigner` of the file store; null when objects are in S3. */
export const URL_SIGNER = Symbol('UrlSigner');
/** `PublicOrigin`: the origin for links and signed URLs, known once the server listens. */
export const PUBLIC_ORIGIN = Symbol('PublicOrigin');

export interface PublicOrigin {
  /** Without a trailing slash. */
  url: string;
}
