export function CheckerPage() {
  return null;
}
