export interface Manifest {
  name: string;
  version: string;
  exports: Record<string, string | { types: string; default: string }>;
  imports?: Record<string, unknown>;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

export interface PackedPackage {
  manifest: Manifest;
  /** What npm packed. */
  folder: string;
  tarball: string;
  /** Bytes of the tarball. */
  size: number;
  unpackedSize: number;
  entryCount: number;
}

export function packAll(out: string, staging: string): PackedPackage[];
