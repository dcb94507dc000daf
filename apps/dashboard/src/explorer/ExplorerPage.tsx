export function ExplorerPage() {
  return null;
}
