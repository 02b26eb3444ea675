package simtest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client is a client whose writes pass Write, which calls do, or fails instead. A dry run is no write.
type Client struct {
	client.Client
	Write func(verb string, k Kind, key client.ObjectKey, do func() error) error
}

func (c Client) write(verb string, o client.Object, do func() error) error {
	k := kindIn(o)
	return c.Write(verb, k, client.ObjectKeyFromObject(o), do)
}

// Create implements client.Writer.
func (c Client) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0 {
		return c.Client.Create(ctx, o, options...)
	}
	return c.write("create", o, func() error { return c.Client.Create(ctx, o, options...) })
}

// Update implements client.Writer.
func (c Client) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return c.write("update", o, func() error { return c.Client.Update(ctx, o, options...) })
}

// Patch implements client.Writer.
func (c Client) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if isDryRun(options) {
		return c.Client.Patch(ctx, o, patch, options...)
	}
	return c.write("patch", o, func() error { return c.Client.Patch(ctx, o, patch, options...) })
}

// isDryRun reports whether a patch writes nothing.
func isDryRun(options []client.PatchOption) bool {
	return len((&client.PatchOptions{}).ApplyOptions(options).DryRun) > 0
}

// Delete implements client.Writer.
func (c Client) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return c.write("delete", o, func() error { return c.Client.Delete(ctx, o, options...) })
}

// Apply implements client.Writer.
func (c Client) Apply(ctx context.Context, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	named, ok := o.(interface {
		GetKind() *string
		GetName() *string
		GetNamespace() *string
	})
	if !ok {
		return fmt.Errorf("%T has no name", o)
	}
	key := client.ObjectKey{Namespace: *named.GetNamespace(), Name: *named.GetName()}
	return c.Write("apply", Kind(*named.GetKind()), key, func() error { return c.Client.Apply(ctx, o, options...) })
}

// DeleteAllOf implements client.Writer.
func (c Client) DeleteAllOf(_ context.Context, o client.Object, _ ...client.DeleteAllOfOption) error {
	return fmt.Errorf("nothing deletes all objects of type %T", o)
}

// Status implements client.StatusClient.
func (c Client) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c Client) SubResource(name string) client.SubResourceClient {
	return subResource{c.Client.SubResource(name), name, c}
}

type subResource struct {
	client.SubResourceClient
	name string
	c    Client
}

func (s subResource) Create(ctx context.Context, o, sub client.Object, options ...client.SubResourceCreateOption) error {
	return s.c.write("create "+s.name+" of", o, func() error { return s.SubResourceClient.Create(ctx, o, sub, options...) })
}

func (s subResource) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	return s.c.write("update "+s.name+" of", o, func() error { return s.SubResourceClient.Update(ctx, o, options...) })
}

func (s subResource) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.c.write("patch "+s.name+" of", o, func() error { return s.SubResourceClient.Patch(ctx, o, patch, options...) })
}
