/** Any JSON value. Numbers that JavaScript cannot hold exactly are `LosslessNumber`s from the lossless-json package. */
export type JsonValue = unknown;
export type JsonObject = { [key: string]: JsonValue };
