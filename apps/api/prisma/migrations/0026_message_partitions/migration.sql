-- The running service may be a role that cannot create or drop tables. These do both for partitions of messages, and nothing else.

-- Only days that ingest is about to write: a caller cannot fill the catalogue.
CREATE FUNCTION public.create_message_partition(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF day NOT BETWEEN current_date - 7 AND current_date + 7 THEN
    RAISE EXCEPTION 'no partition of messages is created for %', day USING ERRCODE = 'invalid_parameter_value';
  END IF;
  EXECUTE format('CREATE TABLE public.%I PARTITION OF public.rollout_messages FOR VALUES FROM (%L) TO (%L)',
    'rollout_messages_' || to_char(day, 'YYYYMMDD'), day, day + 1);
END $$;

-- Answers false when the partition has rows. Looks without the lock first: a partition with rows must not block ingest every hour.
CREATE FUNCTION public.drop_empty_message_partition(day date) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := 'rollout_messages_' || to_char(day, 'YYYYMMDD');
  used boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', name) INTO used;
  IF used THEN RETURN false; END IF;
  LOCK TABLE public.rollout_messages IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', name) INTO used;
  IF used THEN RETURN false; END IF;
  EXECUTE format('DROP TABLE public.%I', name);
  RETURN true;
END $$;

REVOKE EXECUTE ON FUNCTION public.create_message_partition(date), public.drop_empty_message_partition(date) FROM PUBLIC;
