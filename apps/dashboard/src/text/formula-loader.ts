import type { Formula } from './formula-syntax.ts';

/** The MathML of a formula; null: show its source. */
export type FormulaRenderer = (formula: Formula) => string | null;

let renderer: FormulaRenderer | null = null;
let loading: Promise<void> | null = null;
const listeners = new Set<() => void>();

/** The renderer of formulas; null until `loadFormulas` has loaded it. */
export const formulaRenderer = (): FormulaRenderer | null => renderer;

export function onFormulasLoaded(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Loads the renderer (80 kB) once; the browser loads its font (400 kB) with the first formula. After a failure the formulas stay source text, and the next text with a formula tries again. */
export function loadFormulas(): void {
  loading ??= import('./formula-renderer.ts').then(
    ({ renderFormula }) => {
      renderer = renderFormula;
      for (const listener of listeners) listener();
    },
    () => {
      loading = null;
    },
  );
}

/** Resolves when a started load has ended. */
export const formulasSettled = async (): Promise<void> => void (await loading);
