/** A component of a CycloneDX document, as far as its licence goes. */
export interface Component {
  name: string;
  licenses?: { license?: { id?: string; name?: string }; expression?: string }[];
  properties?: { name: string; value: string }[];
}
export function licenceOf(component: Component): string | null;
export function isAllowed(expression: string): boolean;
