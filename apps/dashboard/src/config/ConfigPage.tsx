export function ConfigPage() {
  return null;
}
