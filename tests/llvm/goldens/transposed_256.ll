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
  %pos = phi i64 [ %begin, %start ], [ %pos.next, %done ]
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
  %t8 = sub i64 %hi, %lo
  %t9 = and i64 %t8, -32
  %main.end = add i64 %lo, %t9
  %has.main = icmp slt i64 %lo, %main.end
  br i1 %has.main, label %main, label %rest
main:
  %i = phi i64 [ %lo, %row ], [ %i.next, %main ]
  %t10 = getelementptr float, ptr %t4, i64 %i
  %t11 = load <8 x float>, ptr %t10, align 4
  %t12 = mul i64 %i, 64
  %t13 = getelementptr float, ptr %t5, i64 %t12
  %t14 = getelementptr float, ptr %t13, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t15 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t14, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  %t16 = fadd <8 x float> %t11, %t15
  %t17 = getelementptr float, ptr %t7, i64 %i
  store <8 x float> %t16, ptr %t17, align 4
  %t18 = add i64 %i, 8
  %t19 = getelementptr float, ptr %t4, i64 %t18
  %t20 = load <8 x float>, ptr %t19, align 4
  %t21 = mul i64 %t18, 64
  %t22 = getelementptr float, ptr %t5, i64 %t21
  %t23 = getelementptr float, ptr %t22, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t24 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t23, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  %t25 = fadd <8 x float> %t20, %t24
  %t26 = getelementptr float, ptr %t7, i64 %t18
  store <8 x float> %t25, ptr %t26, align 4
  %t27 = add i64 %i, 16
  %t28 = getelementptr float, ptr %t4, i64 %t27
  %t29 = load <8 x float>, ptr %t28, align 4
  %t30 = mul i64 %t27, 64
  %t31 = getelementptr float, ptr %t5, i64 %t30
  %t32 = getelementptr float, ptr %t31, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t33 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t32, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  %t34 = fadd <8 x float> %t29, %t33
  %t35 = getelementptr float, ptr %t7, i64 %t27
  store <8 x float> %t34, ptr %t35, align 4
  %t36 = add i64 %i, 24
  %t37 = getelementptr float, ptr %t4, i64 %t36
  %t38 = load <8 x float>, ptr %t37, align 4
  %t39 = mul i64 %t36, 64
  %t40 = getelementptr float, ptr %t5, i64 %t39
  %t41 = getelementptr float, ptr %t40, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t42 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t41, i32 4, <8 x i1> splat (i1 true), <8 x float> splat (float 1.0))
  %t43 = fadd <8 x float> %t38, %t42
  %t44 = getelementptr float, ptr %t7, i64 %t36
  store <8 x float> %t43, ptr %t44, align 4
  %i.next = add i64 %i, 32
  %more.main = icmp slt i64 %i.next, %main.end
  br i1 %more.main, label %main, label %rest
rest:
  %has.tail = icmp slt i64 %main.end, %hi
  br i1 %has.tail, label %tail, label %done
tail:
  %j = phi i64 [ %main.end, %rest ], [ %j.next, %tail ]
  %t45 = sub i64 %hi, %j
  %t46 = icmp slt i64 %t45, 8
  %t47 = select i1 %t46, i64 %t45, i64 8
  %t48 = trunc i64 %t47 to i32
  %t49 = insertelement <8 x i32> poison, i32 %t48, i64 0
  %t50 = shufflevector <8 x i32> %t49, <8 x i32> poison, <8 x i32> zeroinitializer
  %t51 = icmp ult <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %t50
  %t52 = getelementptr float, ptr %t4, i64 %j
  %t53 = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %t52, i32 4, <8 x i1> %t51, <8 x float> splat (float 1.0))
  %t54 = mul i64 %j, 64
  %t55 = getelementptr float, ptr %t5, i64 %t54
  %t56 = getelementptr float, ptr %t55, <8 x i64> <i64 0, i64 64, i64 128, i64 192, i64 256, i64 320, i64 384, i64 448>
  %t57 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %t56, i32 4, <8 x i1> %t51, <8 x float> splat (float 1.0))
  %t58 = fadd <8 x float> %t53, %t57
  %t59 = getelementptr float, ptr %t7, i64 %j
  call void @llvm.masked.store.v8f32.p0(<8 x float> %t58, ptr %t59, i32 4, <8 x i1> %t51)
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
