import { PROVENANCE_FIELDS, PROVENANCES, type Provenance, type ProvenanceField } from '@palestra/protocol';

export interface FieldProvenance {
  value: Provenance;
  /** The rule that decided, with the field that it read: `metadata.step`, `name.index`, ... null if none applied. */
  rule: string | null;
}
export type RolloutProvenance = Record<ProvenanceField, FieldProvenance>;

export const UNKNOWN: FieldProvenance = { value: 'unknown', rule: null };

const codeOf = (provenance: Provenance): number => PROVENANCES.indexOf(provenance);

/** Right shift of the packed number after which `& 3` is the code of the field. SQL uses it too. */
export const provenanceShift = (field: ProvenanceField): number => 2 * PROVENANCE_FIELDS.indexOf(field);

/** 18 bits; absent fields are unknown. */
export function packProvenance(fields: Partial<Record<ProvenanceField, Provenance | FieldProvenance>>): number {
  let packed = 0;
  for (const field of PROVENANCE_FIELDS) {
    const level = fields[field] ?? 'unknown';
    packed |= codeOf(typeof level === 'string' ? level : level.value) << provenanceShift(field);
  }
  return packed;
}

export function unpackProvenance(packed: number): Record<ProvenanceField, Provenance> {
  const fields = PROVENANCE_FIELDS.map((field) => [field, PROVENANCES[(packed >> provenanceShift(field)) & 3]!] as const);
  return Object.fromEntries(fields) as Record<ProvenanceField, Provenance>;
}

/** The packed number with one field replaced, for fields that inference fills in later. */
export function withProvenance(packed: number, field: ProvenanceField, provenance: Provenance): number {
  const shift = provenanceShift(field);
  return (packed & ~(3 << shift)) | (codeOf(provenance) << shift);
}
