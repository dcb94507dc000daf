import { useNavigate } from '@tanstack/react-router';
import type { EnvironmentDiscoveryView } from '@palestra/protocol';

/** Buttons for the variants of an environment, if there are several. */
export function VariantTabs({ discovery, variant }: { discovery: EnvironmentDiscoveryView; variant: string }) {
  const navigate = useNavigate({ from: '/environments/$owner/$name' });
  if (discovery.variants.length < 2) return null;
  return (
    <div role="group" aria-label="Variants" className="flex flex-wrap gap-1">
      {discovery.variants.map(({ name }) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === variant}
          onClick={() => void navigate({ search: (before) => ({ tab: before.tab, variant: name }) })}
          className={`flex h-[28px] items-center rounded-[4px] px-2 hover:bg-paper-2 ${name === variant ? 'bg-paper-2 strong' : 'text-ink-2'}`}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
