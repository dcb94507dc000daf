import { HostingError } from '../provider/hosting-error.ts';

const MIB = 1024 * 1024;

/** Of the unpacked files of a source. */
export interface SourceLimits {
  /** Bytes of all files. */
  maxBytes: number;
  /** Files, folders and links. */
  maxEntries: number;
}

/** An upload is compressed, and at most 512 MiB. */
export const SOURCE_LIMITS: SourceLimits = { maxBytes: 1024 * MIB, maxEntries: 50_000 };

/** Names that Linux, macOS and Git accept, in bytes. */
export const MAX_NAME_BYTES = 255;
export const MAX_PATH_BYTES = 1_024;

export const sourceInvalid = (detail: string, cause?: unknown): HostingError => new HostingError('source_invalid', detail, { cause });

export const mebibytes = (bytes: number): string => `${(bytes / MIB).toFixed(1)} MiB`;

export const tooManyBytes = ({ maxBytes }: SourceLimits): HostingError =>
  sourceInvalid(`The source has more than ${mebibytes(maxBytes)} of files. Remove what is not needed, or list it in .dockerignore.`);

export const tooManyEntries = ({ maxEntries }: SourceLimits): HostingError =>
  sourceInvalid(`The source has more than ${maxEntries} files and folders. Remove what is not needed, or list it in .dockerignore.`);
