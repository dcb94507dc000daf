import { formatBytes } from '../format/number.ts';

const MAX_CHARACTERS = 4_096;
const MAX_LINES = 200;
const PREVIEW_CHARACTERS = 1_500;
const PREVIEW_LINES = 24;

/** Whether a page shows only the beginning of the text until the reader asks for all of it. */
export const isLong = (text: string): boolean => text.length > MAX_CHARACTERS || text.split('\n', MAX_LINES + 1).length > MAX_LINES;

/** The beginning of a long text. */
export const previewOf = (text: string): string => text.slice(0, PREVIEW_CHARACTERS).split('\n').slice(0, PREVIEW_LINES).join('\n');

/** The size of the text in UTF-8. */
export const sizeText = (text: string): string => formatBytes(new Blob([text]).size);
