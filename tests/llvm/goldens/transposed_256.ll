declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x float>)
declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)
declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, i32, <8 x i1>)

define void @fused_add(ptr readonly %params, i64 %begin, i64 %end) nounwind {
entry:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %start, label %exit
start:
  %t0 = getelementptr ptr, ptr %params, i64 0
  %p0 = load ptr, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %params, i64 1
  %p1 = load ptr, ptr %t1, align 8
  %t2 = getelementptr ptr, ptr %params, i64 2
  %p2 = load ptr, ptr %t2, align 8
  br label %row
row:
  %pos = phi i64 [ %begin, %start ], [ %pos.next, %done ], [ %pos.block, %block.done ]
  %row.index = udiv i64 %pos, 128
  %row.first = mul i64 %row.index, 128
  %lo = sub i64 %pos, %row.first
  %left = sub i64 %end, %row.first
  %partial = icmp slt i64 %left, 128
  %hi = select i1 %partial, i64 %left, i64 128
  %t3 = mul i64 %row.index, 128
  %t4 = getelementptr float, ptr %p0, i64 %t3
  %t5 = getelementptr float, ptr %p1, i64 %row.index
  %t6 = mul i64 %row.index, 128
  %t7 = getelementptr float, ptr %p2, i64 %t6
  %left.points = sub i64 %end, %pos
  %is.whole = icmp eq i64 %lo, 0
  %has.points = icmp sge i64 %left.points, 2048
  %has.rows = icmp sle i64 %row.index, 48
  %is.long = and i1 %has.points, %has.rows
  %is.block = and i1 %is.whole, %is.long
  br i1 %is.block, label %block, label %single
block:
  br label %columns
columns:
  %c = phi i64 [ 0, %block ], [ %c.next, %columns.next ]
  br label %r
r:
  %r.row = phi i64 [ 0, %columns ], [ %r.next, %r ]
  %t8 = mul i64 %r.row, 128
  %t9 = getelementptr float, ptr %t4, i64 %t8
  %t10 = mul i64 %r.row, 1
  %t11 = getelementptr float, ptr %t5, i64 %t10
  %t12 = mul i64 %r.row, 128
  %t13 = getelementptr float, ptr %t7, i64 %t12
  %t14 = getelementptr float, ptr %t9, i64 %c
  %t15 = load <8 x float>, ptr %t14, align 4
  %t16 = mul i64 %c, 64
  %t17 = getelementptr float, ptr %t11, i64 %t16
  %t18 = getelementptr float, ptr %t17, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t19 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t18, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  ; add
  %t20 = fadd <8 x float> %t15, %t19
  %t21 = getelementptr float, ptr %t13, i64 %c
  store <8 x float> %t20, ptr %t21, align 4
  %r.next = add i64 %r.row, 1
  %r.more = icmp slt i64 %r.next, 16
  br i1 %r.more, label %r, label %columns.next
columns.next:
  %c.next = add i64 %c, 8
  %more.columns = icmp slt i64 %c.next, 128
  br i1 %more.columns, label %columns, label %block.done
block.done:
  %pos.block = add i64 %pos, 2048
  %more.blocks = icmp slt i64 %pos.block, %end
  br i1 %more.blocks, label %row, label %exit
single:
  %t22 = sub i64 %hi, %lo
  %t23 = and i64 %t22, -32
  %main.end = add i64 %lo, %t23
  %has.main = icmp slt i64 %lo, %main.end
  br i1 %has.main, label %main, label %rest
main:
  %i = phi i64 [ %lo, %single ], [ %i.next, %main ]
  %t24 = getelementptr float, ptr %t4, i64 %i
  %t25 = load <8 x float>, ptr %t24, align 4
  %t26 = mul i64 %i, 64
  %t27 = getelementptr float, ptr %t5, i64 %t26
  %t28 = getelementptr float, ptr %t27, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t29 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t28, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  ; add
  %t30 = fadd <8 x float> %t25, %t29
  %t31 = getelementptr float, ptr %t7, i64 %i
  store <8 x float> %t30, ptr %t31, align 4
  %t32 = add i64 %i, 8
  %t33 = getelementptr float, ptr %t4, i64 %t32
  %t34 = load <8 x float>, ptr %t33, align 4
  %t35 = mul i64 %t32, 64
  %t36 = getelementptr float, ptr %t5, i64 %t35
  %t37 = getelementptr float, ptr %t36, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t38 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t37, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  ; add
  %t39 = fadd <8 x float> %t34, %t38
  %t40 = getelementptr float, ptr %t7, i64 %t32
  store <8 x float> %t39, ptr %t40, align 4
  %t41 = add i64 %i, 16
  %t42 = getelementptr float, ptr %t4, i64 %t41
  %t43 = load <8 x float>, ptr %t42, align 4
  %t44 = mul i64 %t41, 64
  %t45 = getelementptr float, ptr %t5, i64 %t44
  %t46 = getelementptr float, ptr %t45, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t47 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t46, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  ; add
  %t48 = fadd <8 x float> %t43, %t47
  %t49 = getelementptr float, ptr %t7, i64 %t41
  store <8 x float> %t48, ptr %t49, align 4
  %t50 = add i64 %i, 24
  %t51 = getelementptr float, ptr %t4, i64 %t50
  %t52 = load <8 x float>, ptr %t51, align 4
  %t53 = mul i64 %t50, 64
  %t54 = getelementptr float, ptr %t5, i64 %t53
  %t55 = getelementptr float, ptr %t54, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t56 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t55, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  ; add
  %t57 = fadd <8 x float> %t52, %t56
  %t58 = getelementptr float, ptr %t7, i64 %t50
  store <8 x float> %t57, ptr %t58, align 4
  %i.next = add i64 %i, 32
  %more.main = icmp slt i64 %i.next, %main.end
  br i1 %more.main, label %main, label %rest
rest:
  %has.tail = icmp slt i64 %main.end, %hi
  br i1 %has.tail, label %tail, label %done
tail:
  %j = phi i64 [ %main.end, %rest ], [ %j.next, %tail ]
  %t59 = sub i64 %hi, %j
  %t60 = icmp slt i64 %t59, 8
  %t61 = select i1 %t60, i64 %t59, i64 8
  %t62 = trunc i64 %t61 to i32
  %t63 = insertelement <8 x i32> poison, i32 %t62, i64 0
  %t64 = shufflevector <8 x i32> %t63, <8 x i32> poison, <8 x i32> zeroinitializer
  %t65 = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t64
  %t66 = getelementptr float, ptr %t4, i64 %j
  %t67 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %t66, i32 4, <8 x i1> %t65, <8 x float> splat (float 1.0))
  %t68 = mul i64 %j, 64
  %t69 = getelementptr float, ptr %t5, i64 %t68
  %t70 = getelementptr float, ptr %t69, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t71 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t70, i32 4, <8 x i1> %t65, <8 x float> splat (float 1.0))
  ; add
  %t72 = fadd <8 x float> %t67, %t71
  %t73 = getelementptr float, ptr %t7, i64 %j
  call void @llvm.masked.store.v8f32.p0(<8 x float> %t72, ptr %t73, i32 4, <8 x i1> %t65)
  %j.next = add i64 %j, 8
  %more.tail = icmp slt i64 %j.next, %hi
  br i1 %more.tail, label %tail, label %done
done:
  %pos.next = add i64 %row.first, %hi
  %more.rows = icmp slt i64 %pos.next, %end
  br i1 %more.rows, label %row, label %exit
exit:
  ret void
}
